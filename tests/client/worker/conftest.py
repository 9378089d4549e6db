"""The server of the tests of whole workers."""

from tests.system.conftest import shared_node as shared_node
