"""Which libmicrohttpd the server runs with: CI runs this folder with two versions, by LD_LIBRARY_PATH."""

import ctypes

from harness.expectations import expect


def test_the_server_runs_with_the_library_that_the_loader_finds_and_names_it(server):
    library = ctypes.CDLL("libmicrohttpd.so.12")
    library.MHD_get_version.restype = ctypes.c_char_p
    version = library.MHD_get_version().decode()

    log = server.log_text()
    expect(f'"libmicrohttpd":"{version}"' in log, f"the line ready does not name {version}:", log)
    expect("libmicrohttpd untested" not in log, "a version that CI tests is logged as untested:", log)
