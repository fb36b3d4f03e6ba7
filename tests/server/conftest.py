"""One server for the tests of this folder that do not need their own."""

import pytest

from servers import in_thread

pytest.importorskip("fastapi", reason="needs the extra `server`")
pytest.importorskip("uvicorn", reason="needs the extra `server`")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("service")) as url:
        yield url
