"""The compiler of TypeScript."""

from harness.pages import ROOT
from harness.tools import run

TEMPLATE = ROOT / "Sources/CPage/files/client.d.ts"


def compile_strictly(*files):
    """The exit code of the compiler, and what it says."""
    return run("tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16",
               "--lib", "es2022,dom", *files)
