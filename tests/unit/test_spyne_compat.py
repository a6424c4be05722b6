"""spyne imported through the shim, each time in a fresh interpreter: import hooks act once per process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.smoke

APPLICATION = """
import io

import server.urlserver.spyne_compat
from spyne import Application, ServiceBase, Unicode, rpc
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

class Echo(ServiceBase):
    @rpc(Unicode, _returns=Unicode)
    def echo(ctx, text):
        return text

application = WsgiApplication(
    Application([Echo], "urn:echo", in_protocol=Soap11(validator="lxml"), out_protocol=Soap11())
)

def ask(method, query, body):
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": "/", "QUERY_STRING": query, "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "text/xml; charset=utf-8",
    }
    return b"".join(application(environ, lambda status, headers: None)).decode()
"""

CALL = (
    '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>'
    '<echo xmlns="urn:echo"><text>ahoj</text></echo></e:Body></e:Envelope>'
)


def run_python(program: str) -> str:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_describes_itself_as_wsdl():
    wsdl = run_python(APPLICATION + "print(ask('GET', 'wsdl', b''))")
    assert "wsdl:definitions" in wsdl
    assert 'name="echo"' in wsdl


def test_answers_a_call():
    answer = run_python(APPLICATION + f"print(ask('POST', '', {CALL.encode()!r}))")
    assert "echoResult>ahoj<" in answer


def test_does_not_import_spyne_itself():
    out = run_python("import sys, server.urlserver.spyne_compat; print('spyne' in sys.modules)")
    assert out.strip() == "False"


def test_leaves_standard_modules_as_they_are():
    """The modules six hands out are the standard ones: their identity must not be overwritten."""
    out = run_python(
        "import server.urlserver.spyne_compat, spyne.util.six.moves.http_cookies, http.cookies\n"
        "from spyne.util.six.moves.urllib.parse import quote\n"
        "print(http.cookies.__spec__.name, quote('a b'))"
    )
    assert out.split() == ["http.cookies", "a%20b"]


def test_unknown_moves_are_not_found():
    out = run_python(
        "import server.urlserver.spyne_compat, spyne\n"
        "try:\n    import spyne.util.six.moves.nonsense\n"
        "except ModuleNotFoundError as error:\n    print(error.name)"
    )
    assert out.strip() == "spyne.util.six.moves.nonsense"
