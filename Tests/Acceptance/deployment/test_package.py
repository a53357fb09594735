"""What .ci/package makes: the archive and the Debian package, on this machine and on fresh systems without Swift.

The short form takes Debian 12, and --long Debian 13, too; both need root, and a mirror of Debian.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest
from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.films_server import Stub
from harness.messages import HOST
from harness.pages import PAGES, ROOT, all_blocks, normal
from harness.roots import Root
from harness.server import Server, start_refusal
from harness.tokens import bearer, make_token
from harness.tools import CONFIG, PACKAGES, made, need, run

# What the machine has to have: the C library, and what a model's engine wants to share with the program.
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}
DATA = "/var/lib/storekeeper/data"
SETTINGS = "etc/storekeeper/storekeeper.json"


@pytest.fixture(scope="module")
def bundle(places):
    """The folder of the archive, unpacked."""
    archive = made("storekeeper-*-linux-x86_64.tar.gz")
    expect_equal(run("tar", "-xzf", archive, "-C", places.directory), (0, ""), "tar")
    return f"{places.directory}/{archive.name.removesuffix('.tar.gz')}"


@pytest.fixture(scope="module", params=["bookworm", pytest.param("trixie", marks=pytest.mark.long_form(only=True))])
def system(request):
    """A fresh Debian."""
    made("storekeeper_*_amd64.deb")
    root = Root(request.param)
    yield root
    root.remove()


def readme_session(address):
    """README's session with curl: what it prints, and the answers that README shows."""
    text = next(block.text for block in all_blocks() if block.page == "README.md" and block.language == "console")
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    expect(len(commands) > 3, "README has no session")
    script = "\n".join([*commands, "wait"]).replace("localhost:8080", address)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=40)
    expect_equal(done.returncode, 0, f"the exit code of the session: {done.stderr}")
    return done.stdout, [line.partition("  ")[0] for line in text.splitlines() if line.startswith("{")]


def serve_and_stop(workspace, data):
    """Serves README's session, a token and a journal's tool to their end; returns the token."""
    server = workspace.server(data=data, domain=None)
    printed, answers = readme_session(f"{HOST}:{server.port}")
    for answer in answers:
        expect(normal(answer) in normal(printed), "the session has no", answer, printed)
    with server.client() as client:
        # The archive has a libmicrohttpd that reads chunks strictly; with that of Debian 12 the server refuses all with 411.
        head = f"POST /v1/actions HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head.encode() + b"2\n[]\r\n0\r\n\r\n")
        expect_equal(client.receive().status, 400, "the status of a chunk without a carriage return")
    token = make_token(workspace, data, "ci", "--read", "/flags")
    with server.client() as client:
        wait_until(lambda: client.get("/v1/state/flags").status == 401, "the server asks for a token")
        expect_equal(client.get("/v1/state/flags", **bearer(token)).json, {"beta": True}, "the state")
    code, said = run(workspace.binary, "journal", "info", "--json", "--data", data)
    expect_equal((code, json.loads(said)["versions"]["latest"]), (0, 2), f"the version of the journal: {said}")
    server.stop()
    return token


def test_the_sums_are_those_of_the_files_and_all_have_one_version(workspace, bundle):
    program = f"{bundle}/bin/storekeeper"
    version = run(program, "--version")[1].strip()

    code, said = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=PACKAGES)

    expect_equal(code, 0, said)
    names = {f"storekeeper-{version}{end}" for end in ("-linux-x86_64.tar.gz", "-linux-x86_64.contents", "-py3-none-any.whl", ".tgz")}
    expect_equal({path.name for path in PACKAGES.iterdir()}, names | {f"storekeeper_{version}_amd64.deb", "SHA256SUMS"}, "files")
    expect_equal(said.count(": OK"), 5, said)
    package = made("storekeeper_*_amd64.deb")
    expect_equal(run("dpkg-deb", "--field", package, "Version"), (0, f"{version}\n"), "the version of the package")
    with open(f"{bundle}/share/man/man1/storekeeper.1") as file:
        manual = file.read()
    expect(f"\n.Os Storekeeper {version}\n" in manual and "@" not in manual, "the manual has another version")
    for name in re.findall(r"^  (\w+)(?: \(default\))?  ", run(program, "--help")[1].partition("SUBCOMMANDS")[2], re.MULTILINE):
        expect(re.search(rf"^\.It Cm {name}\b", manual, re.MULTILINE), "the manual does not name the command", name)
    for path in [ROOT / "README.md", *PAGES.rglob("*.md"), *(path for path in CONFIG.rglob("*") if path.is_file())]:
        for found in re.findall(r"\bstorekeeper[:_-]v?(\d+\.\d+\.\d+)", path.read_text()):
            expect_equal(found, version, f"the version in {path}")


def test_the_archive_is_the_same_wherever_it_is_made_and_lists_what_is_inside(bundle):
    with tarfile.open(made("storekeeper-*-linux-x86_64.tar.gz")) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    with open(f"{bundle}/CONTENTS") as file:
        listed = [line.split()[0] for line in file.read().splitlines()[3:]]

    expect_equal(names, sorted(names), "the order of the files")
    expect_equal(len({(member.mtime, member.uid, member.gid) for member in members}), 1, "times and owners")
    expect({"bin/storekeeper", "config/storekeeper.json", "lib/libmicrohttpd.so.12", "CONTENTS"} <= set(names), names)
    useless = [name for name in names if re.match(r"config/.*(compose|kubernetes|debian)", name)]
    expect_equal(useless, [], "files for Docker, Kubernetes and the Debian package")
    for name in ("libmicrohttpd12t64", "libgnutls30", "libssl-dev", "swift", "grdb.swift", "swift-collections"):
        expect(name in listed, "the list has no", name, listed)
    expect_equal(sorted(os.listdir(f"{bundle}/licences")), sorted([*listed, "common"]), "the licences")


def test_the_program_and_its_libraries_need_no_newer_c_library_than_that_of_debian_12(bundle):
    need("readelf")
    files = [f"{bundle}/bin/storekeeper", *glob.glob(f"{bundle}/lib/*")]
    needed = re.findall(r"\bGLIBC_2\.(\d+)", "".join(run("readelf", "-V", file)[1] for file in files))
    expect(30 < max(map(int, needed)) <= 36, "the newest symbols are those of glibc 2.", max(map(int, needed)))


def test_memory_is_that_of_the_program(workspace, bundle):
    """Who gets whose functions: by the names in the files, and by what the loader of a run says."""
    need("nm")
    program = f"{bundle}/bin/storekeeper"
    log = workspace.path("bindings")
    environment = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": log, "LD_BIND_NOW": "1"}
    expect_equal(run(program, "check", "--data", "none", env=environment)[0], 0, "the exit code of check")
    (path,) = glob.glob(f"{log}.*")
    with open(path) as file:
        lines = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\w+)'", file.read())
    found = [(source, os.path.realpath(to), symbol) for source, to, symbol in lines]

    defined = set(re.findall(r" T (\w+)$", run("nm", "-D", program)[1], re.MULTILINE))
    hidden = [name for name in defined if re.match(r"(EVP_|OPENSSL_|ZSTD_|deflate|inflate)", name)]
    expect(not hidden, "the system's libcurl would get these of the program:", hidden)
    for name in ("malloc", "free"):
        users = {os.path.basename(source): to for source, to, symbol in found if symbol == name}
        expect({"storekeeper", "libc.so.6", "libmicrohttpd.so.12", "libsqlite3.so.0"} <= set(users), users)
        expect_equal(set(users.values()), {f"{bundle}/lib/libjemalloc.so.2"}, f"whose {name} is called: {users}")
    outside = {os.path.basename(to) for _, to, _ in lines if not to.startswith(bundle)}
    expect(outside <= OF_THE_SYSTEM, "libraries of the machine:", outside)


def test_the_archive_serves_on_this_machine(workspace, bundle):
    workspace.binary = f"{bundle}/bin/storekeeper"
    serve_and_stop(workspace, workspace.path("data"))


def test_the_archive_serves_on_a_fresh_system(workspace, bundle, system):
    folder = "/opt/" + os.path.basename(bundle)
    expect_equal(run("cp", "-R", bundle, f"{system.folder}/opt"), (0, ""), "cp")
    workspace.binary = system.wrap(workspace.path("storekeeper"), f"{folder}/bin/storekeeper")
    serve_and_stop(workspace, workspace.path("data"))
    start_refusal(workspace, "none", "install libcurl4", films_base_url="http://localhost:1")
    start_refusal(workspace, "none", "apt-get install libjavascriptcoregtk-4.1-0", model=own_model(workspace))
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/a/b", "value": 1}))
        expect_equal(client.get("/v1/state").json, {"a": {"b": 1}}, "a document")
    server.stop()


def own_model(workspace):
    """The path of a model, where a program inside another root finds it, too."""
    path = workspace.path("model.js")
    shutil.copy(CONFIG / "models/counter.js", path)
    return path


# It installs the engine and what it needs, 70 MB.
@pytest.mark.long_form(only=True)
def test_a_model_is_served_with_the_engine_of_the_system(workspace, bundle, system):
    folder = "/opt/" + os.path.basename(bundle)
    workspace.binary = system.wrap(workspace.path("storekeeper"), f"{folder}/bin/storekeeper")
    run("cp", "-R", bundle, f"{system.folder}/opt")
    system.run("apt-get", "update", "-q")
    system.run("apt-get", "install", "-y", "-q", "--no-install-recommends", "libjavascriptcoregtk-4.1-0")
    server = workspace.server(model=own_model(workspace))
    with server.client() as client:
        client.commit(action("counter/add", {"amount": 2}))
        expect_equal(client.post(action("counter/add", {"amount": -3})).json["code"], "counter.negative", "a rejection")
        expect_equal(client.post(action("counter/add", {})).json["code"], "invalid-action", "a payload without amount")
    server.kill()
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 2}, "the counter after kill -9")
    server.stop()


# It installs libcurl and thirty other libraries.
@pytest.mark.long_form(only=True)
def test_films_come_by_the_libcurl_of_the_system(workspace, bundle, system):
    folder = "/opt/" + os.path.basename(bundle)
    workspace.binary = system.wrap(workspace.path("storekeeper"), f"{folder}/bin/storekeeper")
    system.run("apt-get", "update", "-q")
    system.run("apt-get", "install", "-y", "-q", "--no-install-recommends", "libcurl4")
    stub = Stub(workspace)
    stub.will(stub.good)
    server = workspace.server(data="none", films_base_url=stub.address)
    with server.client() as client:
        client.post(action("films/load"), Prefer="wait=20")
        films = client.get("/v1/state/films").json
    expect_equal(films["phase"], "finished", f"phase of {films}")
    server.stop()


def test_the_package_has_the_services_and_settings_that_an_operator_may_change(workspace):
    package, root = made("storekeeper_*_amd64.deb"), workspace.path("root")
    run("dpkg-deb", "--raw-extract", package, root)

    depends = {each.split()[0] for each in run("dpkg-deb", "--field", package, "Depends")[1].split(", ")}
    expect_equal(depends, {"libc6", "libgcc-s1", "libstdc++6", "systemd"}, "what the package depends on")
    with open(f"{root}/DEBIAN/conffiles") as file:
        expect_equal(file.read(), f"/{SETTINGS}\n", "the files of the operator")
    for name in ("storekeeper.service", "storekeeper.socket"):
        with open(f"{root}/lib/systemd/system/{name}") as file:
            expect_equal(file.read(), (CONFIG / "systemd" / name).read_text(), name)
    for script in ("postinst", "prerm", "postrm"):
        expect_equal(run("sh", "-n", f"{root}/DEBIAN/{script}"), (0, ""), f"what sh says of {script}")
        expect(os.access(f"{root}/DEBIAN/{script}", os.X_OK), f"{script} is no program")
    code, said = run(f"{root}/usr/bin/storekeeper", "check", "--config", f"{root}/{SETTINGS}")
    expect_equal(code, 0, said)
    with open(f"{root}/{SETTINGS}") as file:
        settings = json.load(file)
    shipped = json.loads((CONFIG / "storekeeper.json").read_text())
    expect_equal(settings, shipped | {"data": DATA}, "the settings")


def older(package, workspace):
    """The same package with a lower version."""
    root, path = workspace.path("older"), workspace.path("older.deb")
    run("dpkg-deb", "--raw-extract", package, root)
    with open(f"{root}/DEBIAN/control") as file:
        control = file.read()
    with open(f"{root}/DEBIAN/control", "w") as file:
        file.write(re.sub(r"^Version: ", "Version: 0~", control, flags=re.MULTILINE))
    code, said = run("dpkg-deb", "-Znone", "--root-owner-group", "--build", root, path)
    expect_equal(code, 0, said)
    return path


def test_the_package_is_installed_upgraded_and_removed_and_the_data_stays(workspace, system):
    package = made("storekeeper_*_amd64.deb")
    user = ("setpriv", "--reuid=storekeeper", "--regid=storekeeper", "--clear-groups", "storekeeper")
    workspace.binary = system.wrap(workspace.path("storekeeper"), *user)
    # For the file of the port.
    os.chmod(workspace.directory, 0o777)

    system.run("dpkg", "--install", older(package, workspace))
    # As the unit has it from systemd.
    system.run("install", "-d", "-o", "storekeeper", "-g", "storekeeper", "-m", "0700", os.path.dirname(DATA))
    token = serve_and_stop(workspace, DATA)
    settings = system.folder / SETTINGS
    settings.write_text(settings.read_text().replace('"grace_seconds": 10', '"grace_seconds": 9'))

    run("cp", package, workspace.path("storekeeper.deb"))
    system.run("dpkg", "--install", workspace.path("storekeeper.deb"))

    version = run("dpkg-deb", "--field", package, "Version")[1].strip()
    status = system.run("dpkg-query", "-W", "-f", "${Version} ${Status}", "storekeeper")
    expect_equal(status, f"{version} install ok installed", "the status of the package")
    said = system.run("storekeeper", "check", "--config", f"/{SETTINGS}")
    expect(re.search(r"^grace_seconds = 9 ", said, re.MULTILINE), "the operator's setting is gone:", said)
    server = Server(workspace, DATA, {"domain": None}).start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/flags", **bearer(token)).json, {"beta": True}, "the state")
    server.stop()

    journal = sorted(os.listdir(f"{system.folder}/{DATA}"))
    service = system.folder / "etc/systemd/system/multi-user.target.wants/storekeeper.service"
    expect(service.is_symlink(), "the service is not enabled")
    system.run("dpkg", "--remove", "storekeeper")
    for gone in ("usr/bin/storekeeper", "usr/lib/storekeeper", "lib/systemd/system/storekeeper.service"):
        expect(not os.path.lexists(system.folder / gone), gone, "is left by --remove")
    expect("9" in settings.read_text(), "the settings are gone with the program")
    system.run("dpkg", "--purge", "storekeeper")
    for gone in ("etc/storekeeper", service):
        expect(not os.path.lexists(system.folder / gone), gone, "is left by --purge")
    expect_equal(sorted(os.listdir(f"{system.folder}/{DATA}")), journal, "the data after --purge")
