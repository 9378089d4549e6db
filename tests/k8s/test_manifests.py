"""The manifests fit the code: ports, settings, probes, how nodes meet, the time to stop, and who may do what."""

from pathlib import Path
from typing import Any

import pytest

from corvo.cli.supervise.programs import STOP_MARGIN_S
from corvo.runtime.addresses import check_reachable, split_address
from corvo.runtime.admin_password import exposure, read_password
from corvo.runtime.process import read_secret
from corvo.runtime.settings import ENV_PREFIX, Settings, load, names
from docs.generate import PAGE_ROUTES
from gateway.health import ASK_S
from shards.group.bootstrap import Patience
from shards.group.peers import read_keys
from tests.k8s.yaml_reader import documents

BASE = Path(__file__).parents[2] / "k8s" / "base"
FILES = sorted(BASE.glob("*.yaml"))
APP = {"app.kubernetes.io/name": "corvo"}


def one(kind: str, name: str = "corvo") -> Any:
    found = [
        document
        for path in FILES
        for document in documents(path.read_text())
        if document["kind"] == kind and document["metadata"]["name"] == name
    ]
    assert len(found) == 1
    return found[0]


def pod() -> Any:
    return one("StatefulSet")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def variables() -> dict[str, str]:
    lines = (BASE / "settings.env").read_text().split()
    return dict(line.split("=", 1) for line in lines)


def settings_of(pod_name: str) -> Settings:
    """What the server in this pod sees."""
    environ = variables()
    for variable in container()["env"]:
        value = variable.get("value", pod_name)  # the other way is a field of the pod: its name
        environ[variable["name"]] = value.replace("$(CORVO_NODE_ID)", environ.get("CORVO_NODE_ID", ""))
    return load({}, environ)[0]


def settings() -> Settings:
    return settings_of("corvo-0")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_manifest_can_be_read(path: Path) -> None:
    for document in documents(path.read_text()):
        assert {"apiVersion", "kind"} <= document.keys()


def test_kustomize_knows_every_file() -> None:
    (kustomization,) = documents((BASE / "kustomization.yaml").read_text())

    (generated,) = kustomization["configMapGenerator"]
    assert set(kustomization["resources"]) == {path.name for path in FILES} - {"kustomization.yaml"}
    assert generated["envs"] == ["settings.env"]
    assert container()["envFrom"] == [{"configMapRef": {"name": generated["name"]}}]


def test_the_folder_itself_can_be_applied() -> None:
    (kustomization,) = documents((BASE.parent / "kustomization.yaml").read_text())

    assert kustomization["resources"] == [BASE.name]


def test_every_variable_is_a_setting_that_the_server_accepts() -> None:
    given = [*variables(), *(variable["name"] for variable in container()["env"])]
    given.remove("CORVO_API_KEY_FILE")  # of `corvo` in the pod, not of the server

    assert {name.removeprefix(ENV_PREFIX).lower() for name in given} <= set(names())
    assert len(given) == len(set(given))
    assert settings().fsync == "on"


def test_the_ports_are_those_of_the_settings() -> None:
    http = split_address(settings().bind)[1]
    raft = split_address(settings().raft_bind)[1]
    expected = {"http": http, **{f"raft-{shard}": raft + shard for shard in range(settings().shards)}}

    assert {port["name"]: port["containerPort"] for port in container()["ports"]} == expected
    nodes = one("Service", "corvo-nodes")["spec"]["ports"]
    assert {port["name"]: port["port"] for port in nodes} == expected
    assert all(port["targetPort"] == port["name"] for port in nodes)
    assert [(port["port"], port["targetPort"]) for port in one("Service")["spec"]["ports"]] == [(http, "http")]


def test_the_probes_ask_pages_that_are_served() -> None:
    probes = {name: container()[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")}

    assert {name: probe["httpGet"] for name, probe in probes.items()} == {
        "startupProbe": {"path": "/livez", "port": "http"},
        "livenessProbe": {"path": "/livez", "port": "http"},
        "readinessProbe": {"path": "/readyz", "port": "http"},
    }
    assert {probe["httpGet"]["path"] for probe in probes.values()} <= PAGE_ROUTES.keys()
    assert probes["readinessProbe"]["timeoutSeconds"] > ASK_S
    assert probes["livenessProbe"]["periodSeconds"] * probes["livenessProbe"]["failureThreshold"] >= 60


def test_the_pod_has_time_to_stop_in_order() -> None:
    (command, seconds) = container()["lifecycle"]["preStop"]["exec"]["command"]
    drains = 3 * (settings().shutdown_timeout + STOP_MARGIN_S)  # gateway, shards, mirror: one after the other

    assert command == "sleep"
    assert pod()["terminationGracePeriodSeconds"] > int(seconds) + drains


def test_the_pod_may_do_nothing_that_it_need_not() -> None:
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["enableServiceLinks"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["runAsUser"] > 10_000
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container()["resources"]["limits"]


def volume(name: str) -> Any:
    (only,) = [volume for volume in pod()["volumes"] if volume["name"] == name]
    return only


def mounts() -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container()["volumeMounts"]}


def test_what_is_written_has_a_volume() -> None:
    (claim,) = one("StatefulSet")["spec"]["volumeClaimTemplates"]

    assert mounts()["/data"] == claim["metadata"]["name"]
    assert "emptyDir" in volume(mounts()["/tmp"])
    assert len(mounts()) == len(pod()["volumes"]) + 1
    assert container()["args"] == ["server", "--data-dir", "/data"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_the_secret_is_where_the_settings_say_and_can_be_read_by_the_pods_group_alone() -> None:
    folder, _, key = settings().cluster_secret_file.rpartition("/")
    secret = volume(mounts()[folder])["secret"]

    assert (secret["secretName"], key) == ("corvo-cluster", "secret")
    assert secret["defaultMode"] == 0o440
    assert "fsGroup" in pod()["securityContext"]


def test_the_server_accepts_a_secret_of_that_mode(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a secret that is long enough for a test\n")
    file.chmod(volume("cluster-secret")["secret"]["defaultMode"])

    assert read_secret(str(file)) is not None
    assert read_keys(str(file)) is not None


def test_the_admin_password_is_in_a_secret_of_its_own_and_the_command_line_in_the_pod_uses_it(tmp_path: Path) -> None:
    folder, _, key = settings().admin_password_file.rpartition("/")
    secret = volume(mounts()[folder])["secret"]
    file = tmp_path / "password"
    file.write_text("a-password-for-tests\n")
    file.chmod(secret["defaultMode"])

    assert (secret["secretName"], key) == ("corvo-admin", "password")
    assert variables()["CORVO_API_KEY_FILE"] == settings().admin_password_file
    assert read_password(str(file)) == "a-password-for-tests"
    assert exposure(settings()) == ""


def test_three_nodes_find_each_other_by_the_name_of_their_service() -> None:
    replicas = one("StatefulSet")["spec"]["replicas"]

    assert settings().discover == "dns"
    assert settings().discover_dns_name == one("Service", "corvo-nodes")["metadata"]["name"]
    assert settings().expect_nodes == replicas == 3
    assert one("StatefulSet")["spec"]["podManagementPolicy"] == "Parallel"


def test_a_node_is_named_after_its_pod_and_reached_by_that_name() -> None:
    for name in ("corvo-0", "corvo-2"):
        settings = settings_of(name)
        host, port = split_address(settings.raft_advertise)

        check_reachable(settings.raft_advertise)
        assert settings.node_id == name
        assert host == f"{name}.{one('StatefulSet')['spec']['serviceName']}"
        assert port == split_address(settings.raft_bind)[1]


def test_a_node_that_waits_for_the_others_is_not_killed_meanwhile() -> None:
    probe = container()["startupProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] > Patience().discover


def test_a_majority_stays_when_machines_are_drained_or_one_is_lost() -> None:
    replicas = one("StatefulSet")["spec"]["replicas"]
    (preferred,) = pod()["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    apart = preferred["podAffinityTerm"]

    assert one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1 <= (replicas - 1) // 2
    assert apart == {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APP}}


def test_every_selector_finds_the_pod() -> None:
    spec = one("StatefulSet")["spec"]

    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == APP
    assert spec["serviceName"] == "corvo-nodes"
    assert one("Service")["spec"]["selector"] == one("Service", "corvo-nodes")["spec"]["selector"] == APP
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == APP
    assert one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == APP


def test_nodes_find_each_other_before_they_are_ready() -> None:
    nodes = one("Service", "corvo-nodes")["spec"]

    assert nodes["clusterIP"] == "None"
    assert nodes["publishNotReadyAddresses"] is True


def test_raft_is_for_the_pods_themselves_and_http_for_labelled_clients() -> None:
    clients, peers = one("NetworkPolicy")["spec"]["ingress"]
    raft = split_address(settings().raft_bind)[1]

    assert clients["from"] == [{"podSelector": {"matchLabels": {"corvo-client": "true"}}}]
    assert [port["port"] for port in clients["ports"]] == ["http"]
    assert peers["from"] == [{"podSelector": {"matchLabels": APP}}]
    assert [(port["port"], port["endPort"]) for port in peers["ports"]] == [(raft, raft + settings().shards - 1)]
    assert one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]


# TLS, a component to add


TLS = BASE.parent / "tls"


def test_tls_adds_to_what_the_base_has() -> None:
    (component,) = documents((TLS / "kustomization.yaml").read_text())
    (patch,) = documents((TLS / "statefulset.yaml").read_text())
    (base,) = documents((BASE / "kustomization.yaml").read_text())
    added = patch["spec"]["template"]["spec"]
    (inside,) = added["containers"]

    assert component["kind"] == "Component"
    assert [one["path"] for one in component["patches"]] == ["statefulset.yaml"]
    (generated,) = component["configMapGenerator"]
    assert (generated["behavior"], generated["envs"]) == ("merge", ["settings.env"])
    assert generated["name"] == base["configMapGenerator"][0]["name"]
    assert (patch["kind"], patch["metadata"]["name"], inside["name"]) == ("StatefulSet", "corvo", container()["name"])
    probes = [name for name in container() if name.endswith("Probe")]
    assert all(inside[name] == {"httpGet": {"scheme": "HTTPS"}} for name in probes)
    assert len(probes) == sum(name.endswith("Probe") for name in inside)


def test_tls_finds_its_files_where_the_secret_is() -> None:
    (patch,) = documents((TLS / "statefulset.yaml").read_text())
    added = patch["spec"]["template"]["spec"]
    (volume,), (mount,) = added["volumes"], added["containers"][0]["volumeMounts"]
    given = dict(line.split("=", 1) for line in (TLS / "settings.env").read_text().split())
    settings = load({}, {**variables(), **given})[0]

    assert volume["name"] == mount["name"] and "subPath" not in mount
    assert volume["name"] not in {one["name"] for one in pod()["volumes"]}
    assert not volume["secret"]["defaultMode"] & 0o007
    assert (settings.tls_cert, settings.tls_key) == (f"{mount['mountPath']}/tls.crt", f"{mount['mountPath']}/tls.key")
    assert given["CORVO_SERVER"] == f"https://localhost:{split_address(settings.bind)[1]}"
    assert given["CORVO_CA_CERT"].startswith(mount["mountPath"])
