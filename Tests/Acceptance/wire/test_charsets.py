"""The charset of a body: JSON over a network is UTF-8 (RFC 8259, section 8.1)."""

import pytest
from harness.actions import add
from harness.expectations import expect_equal
from harness.messages import encode_request
from harness.wire import converse, judge_document, judge_one_answer


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "UTF-16LE", '"utf-16"', "utf-7"])
@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
def test_a_body_in_another_charset_than_utf_8_is_refused(server, charset, form):
    received = converse(
        server.port, encode_request("POST", "/v1/actions", add(1), {"Content-Type": f"{form}; charset={charset}"})
    )
    judge_document(judge_one_answer(received, "POST"), {415})


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf-8"', "utf-8; a=b"])
def test_a_body_in_utf_8_is_taken_however_that_is_written(server, charset):
    fields = {"Content-Type": f"application/json;charset={charset}"}
    received = converse(server.port, encode_request("POST", "/v1/actions", add(1), fields))
    expect_equal(judge_one_answer(received, "POST").status, 200, "the status")
