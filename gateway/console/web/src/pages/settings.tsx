/** Who may do what: keys, roles, namespaces, sign-on. */

import { ask, get, post } from "../api/client";
import { refresh, useQuery } from "../api/query";
import { may } from "../api/session";
import type { Key, KeyCreated, Namespace, Role, Sso } from "../api/types";
import { quoted } from "../model/shell";
import { Card, CopyAs, CopyButton, Empty, Head, Loaded, Time, useTitle } from "../parts/basic";
import { Confirm, Dialog, FormDialog, show } from "../parts/dialog";
import { Icon } from "../parts/icons";
import { Table, type Column } from "../parts/table";
import { attempt } from "../parts/toast";
import { Link, place } from "../shell/router";
import { s } from "../strings";

const TABS = [
  { id: "keys", title: s.settings.keys, needs: "api_keys", view: Keys },
  { id: "roles", title: s.settings.roles, needs: "roles", view: Roles },
  { id: "namespaces", title: s.settings.namespaces, needs: "namespaces", view: Namespaces },
  { id: "sso", title: s.settings.sso, needs: "sso_settings", view: SignOn },
] as const;

export function Settings() {
  useTitle(s.nav.settings);
  const { params } = place.use();
  const tabs = TABS.filter((tab) => may(tab.needs));
  const tab = tabs.find((one) => one.id === params.get("tab")) ?? tabs[0];
  return (
    <>
      <Head title={s.nav.settings} />
      <nav class="tabs" aria-label={s.nav.settings}>
        {tabs.map((one) => (
          <Link key={one.id} to="settings" params={{ tab: one.id }} {...(one === tab ? { "aria-current": "page" as const } : {})}>
            {one.title}
          </Link>
        ))}
      </nav>
      {tab && <tab.view />}
    </>
  );
}

const keyPath = (key: Key, action = ""): string => `/auth/keys/${key.key_hash}${action}`;

const KEY_COLUMNS: readonly Column<Key>[] = [
  { key: "name", title: s.settings.name, cell: (key) => <span class="strong">{key.name}</span> },
  { key: "prefix", title: s.settings.key, cell: (key) => <code>{key.prefix ?? key.key_hash.slice(0, 8)}…</code> },
  { key: "role", title: s.settings.role, cell: (key) => [key.role, ...(key.roles ?? [])].join(", ") },
  { key: "namespace", title: s.settings.namespace, rank: 2, cell: (key) => key.namespace },
  { key: "scope", title: s.settings.scope, rank: 3, cell: (key) => key.queue_scope || s.settings.allQueues },
  { key: "used", title: s.settings.used, cell: (key) => <Time at={key.last_used_at} /> },
  { key: "expires", title: s.settings.expires, rank: 2, cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : s.settings.never) },
  { key: "state", title: s.columns.status, cell: (key) => <span class={`status ${key.enabled ? "active" : "paused"}`}>{key.enabled ? s.settings.enabled : s.settings.disabled}</span> },
  { key: "act", title: s.columns.actions, cell: (key) => <KeyActions of={key} /> },
];

function KeyActions({ of: key }: { of: Key }) {
  if (!may("update_key")) return null;
  const toggle = async () => {
    await ask({ method: "PUT", path: keyPath(key), body: { enabled: !key.enabled } });
    refresh();
  };
  return (
    <span class="buttons">
      <button class="quiet" onClick={() => void attempt(toggle, s.settings.changed)}>
        {key.enabled ? s.settings.disable : s.settings.enable}
      </button>
      <button
        class="quiet"
        onClick={() =>
          show(
            <Confirm
              title={s.settings.rotate}
              text={s.settings.rotateText(key.name)}
              submit={s.settings.rotate}
              onConfirm={async () => {
                const made = await post<KeyCreated>(keyPath(key, "/rotate"), {});
                refresh();
                window.setTimeout(() => show(<NewKey made={made} />));
              }}
            />,
          )
        }
      >
        {s.settings.rotate}
      </button>
      <button
        class="danger quiet"
        onClick={() =>
          show(
            <Confirm
              title={s.settings.delete}
              text={s.settings.deleteKey(key.name)}
              submit={s.settings.delete}
              retype={key.name}
              onConfirm={async () => {
                await ask({ method: "DELETE", path: keyPath(key) });
                refresh();
                return s.settings.deleted;
              }}
            />,
          )
        }
      >
        {s.settings.delete}
      </button>
    </span>
  );
}

function Keys() {
  const result = useQuery<Key[]>("keys", () => get("/auth/keys"));
  return (
    <Card
      title={s.settings.keys}
      side={
        <>
          <CopyAs call={{ method: "GET", path: "/auth/keys" }} command="keys list" />
          {may("create_key") && (
            <button class="primary" onClick={() => show(<KeyDialog />)}>
              <Icon name="plus" /> {s.settings.createKey}
            </button>
          )}
        </>
      }
    >
      <Loaded result={result}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty icon="settings" title={s.settings.noKeys} hint="corvo keys create admin --role admin" />
          ) : (
            <Table label={s.settings.keys} rows={keys} columns={KEY_COLUMNS} idOf={(key) => key.key_hash} />
          )
        }
      </Loaded>
    </Card>
  );
}

/** Shown once: the server keeps only its hash. */
const NewKey = ({ made }: { made: KeyCreated }) => (
  <Dialog title={s.settings.newKey}>
    <p>{s.settings.once}</p>
    <p class="secret">
      <code>{made.api_key}</code> <CopyButton text={made.api_key} label={s.settings.copyKey} />
    </p>
    <CopyAs call={{ method: "GET", path: "/auth/whoami" }} command={`whoami --api-key ${quoted("$CORVO_API_KEY")}`} />
  </Dialog>
);

function KeyDialog() {
  const roles = useQuery<Role[]>(may("roles") ? "roles" : null, () => get("/auth/roles"));
  const send = async (form: FormData) => {
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const made = await post<KeyCreated>("/auth/keys", {
      name: text("name"),
      role: text("role"),
      ...(text("namespace") ? { namespace: text("namespace") } : {}),
      ...(text("scope") ? { queue_scope: text("scope") } : {}),
      ...(text("expires") ? { expires_at: new Date(text("expires")).toISOString() } : {}),
    });
    refresh();
    window.setTimeout(() => show(<NewKey made={made} />));
  };
  return (
    <FormDialog title={s.settings.createKey} submit={s.settings.createKey} onSubmit={send}>
      <label>
        {s.settings.name}
        <input name="name" required maxLength={100} autocomplete="off" autofocus />
      </label>
      <div class="pair">
        <label>
          {s.settings.role}
          <select name="role" defaultValue="readonly">
            {(roles.data ?? [{ name: "readonly" }]).map((role) => (
              <option key={role.name}>{role.name}</option>
            ))}
          </select>
        </label>
        <label>
          {s.settings.namespace}
          <input name="namespace" placeholder="default" autocomplete="off" />
        </label>
        <label>
          {s.settings.scope}
          <input name="scope" placeholder="emails.*" autocomplete="off" />
        </label>
        <label>
          {s.settings.expires}
          <input name="expires" type="datetime-local" />
        </label>
      </div>
      <small>{s.settings.firstKey}</small>
    </FormDialog>
  );
}

function Roles() {
  const result = useQuery<Role[]>("roles", () => get("/auth/roles"));
  return (
    <Card
      title={s.settings.roles}
      side={
        may("put_role") && (
          <button class="primary" onClick={() => show(<RoleDialog />)}>
            <Icon name="plus" /> {s.settings.createRole}
          </button>
        )
      }
    >
      <Loaded result={result}>
        {(roles) => (
          <ul class="roles">
            {roles.map((role) => (
              <li key={role.name}>
                <b>{role.name}</b> {role.built_in && <span class="tag">{s.settings.builtIn}</span>}
                <span class="grow" />
                {!role.built_in && may("put_role") && (
                  <button class="quiet" onClick={() => show(<RoleDialog from={role} />)}>
                    {s.settings.edit}
                  </button>
                )}
                {!role.built_in && may("delete_role") && (
                  <button
                    class="danger quiet"
                    onClick={() =>
                      show(
                        <Confirm
                          title={s.settings.delete}
                          text={s.settings.deleteRole(role.name)}
                          submit={s.settings.delete}
                          retype={role.name}
                          onConfirm={async () => {
                            await ask({ method: "DELETE", path: `/auth/roles/${encodeURIComponent(role.name)}` });
                            refresh();
                            return s.settings.deleted;
                          }}
                        />,
                      )
                    }
                  >
                    {s.settings.delete}
                  </button>
                )}
                <p>
                  {role.permissions.map((one) => (
                    <code key={one.resource} class="tag">
                      {one.resource}:{one.actions.join(",")}
                    </code>
                  ))}
                </p>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Card>
  );
}

const linesOf = (role: Role): string => role.permissions.map((one) => `${one.resource}:${one.actions.join(",")}`).join("\n");

function RoleDialog({ from }: { from?: Role }) {
  const send = async (form: FormData) => {
    const permissions = String(form.get("permissions"))
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean)
      .map((line) => {
        const [resource = "", actions = ""] = line.split(":");
        return { resource: resource.trim(), actions: actions.split(",").map((one) => one.trim()).filter(Boolean) };
      });
    await post("/auth/roles", { name: String(form.get("name")).trim(), permissions });
    refresh();
    return s.settings.changed;
  };
  return (
    <FormDialog title={from ? s.settings.edit : s.settings.createRole} submit={s.save} onSubmit={send}>
      <label>
        {s.settings.name}
        <input name="name" required defaultValue={from?.name ?? ""} readOnly={from !== undefined} autocomplete="off" />
      </label>
      <label>
        {s.settings.permissions}
        <textarea name="permissions" class="mono" rows={8} required spellcheck={false} defaultValue={from ? linesOf(from) : "jobs:read,list\nqueues:read"} />
        <small>{s.settings.permissionsHint}</small>
      </label>
    </FormDialog>
  );
}

const NAMESPACE_COLUMNS: readonly Column<Namespace>[] = [
  { key: "name", title: s.settings.namespace, cell: (one) => <span class="strong">{one.name}</span> },
  { key: "state", title: s.columns.status, cell: (one) => <span class={`status ${one.state}`}>{one.state}</span> },
  { key: "created", title: s.columns.created, cell: (one) => <Time at={one.created_at} /> },
  { key: "jobs", title: s.settings.quota, isNumber: true, cell: (one) => one.quotas?.max_jobs?.toLocaleString("en-US") ?? "–" },
  {
    key: "act",
    title: s.columns.actions,
    cell: (one) =>
      one.name !== "default" && may("delete_namespace") ? (
        <button
          class="danger quiet"
          onClick={() =>
            show(
              <Confirm
                title={s.settings.delete}
                text={s.settings.deleteNamespace(one.name)}
                submit={s.settings.delete}
                retype={one.name}
                onConfirm={async () => {
                  await ask({ method: "DELETE", path: `/namespaces/${encodeURIComponent(one.name)}` });
                  refresh();
                  return s.settings.deleted;
                }}
              />,
            )
          }
        >
          {s.settings.delete}
        </button>
      ) : null,
  },
];

function Namespaces() {
  const result = useQuery<Namespace[]>("namespaces", () => get("/namespaces"));
  const create = async (form: FormData) => {
    await post("/namespaces", { name: String(form.get("name")).trim() });
    refresh();
    return s.settings.changed;
  };
  return (
    <Card
      title={s.settings.namespaces}
      side={
        <>
          <CopyAs call={{ method: "GET", path: "/namespaces" }} command="namespaces list" />
          {may("create_namespace") && (
            <button
              class="primary"
              onClick={() =>
                show(
                  <FormDialog title={s.settings.createNamespace} submit={s.save} onSubmit={create}>
                    <label>
                      {s.settings.name}
                      <input name="name" required autocomplete="off" autofocus />
                    </label>
                  </FormDialog>,
                )
              }
            >
              <Icon name="plus" /> {s.settings.createNamespace}
            </button>
          )}
        </>
      }
    >
      <Loaded result={result}>
        {(rows) => <Table label={s.settings.namespaces} rows={rows} columns={NAMESPACE_COLUMNS} idOf={(one) => one.name} />}
      </Loaded>
    </Card>
  );
}

function SignOn() {
  const result = useQuery<Sso>("sso", () => get("/settings/sso"));
  return (
    <Card title={s.settings.sso}>
      <Loaded result={result}>{(sso) => <SignOnForm sso={sso} key={sso.updated_at ?? ""} />}</Loaded>
    </Card>
  );
}

function SignOnForm({ sso }: { sso: Sso }) {
  const isReadOnly = !may("set_sso_settings");
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const mappings = Object.fromEntries(
      text("mappings")
        .split("\n")
        .map((line) => line.split("=").map((part) => part.trim()))
        .filter((parts) => parts.length === 2 && parts[0] !== ""),
    ) as Record<string, string>;
    await attempt(
      () =>
        post("/settings/sso", {
          provider: text("provider"),
          oidc_issuer_url: text("issuer"),
          oidc_client_id: text("client"),
          oidc_group_claim: text("claim"),
          saml_enabled: sso.saml_enabled,
          group_role_mappings: mappings,
        }),
      s.settings.changed,
    );
    refresh();
  };
  return (
    <form class="fields narrow" onSubmit={(event) => void save(event)}>
      <p class="faint">{s.settings.ssoAbout}</p>
      <fieldset disabled={isReadOnly}>
        <label>
          {s.settings.provider}
          <select name="provider" defaultValue={sso.provider}>
            <option value="">{s.settings.noProvider}</option>
            <option value="oidc">OpenID Connect</option>
          </select>
        </label>
        <label>
          {s.settings.issuer}
          <input name="issuer" type="url" defaultValue={sso.oidc_issuer_url} />
        </label>
        <label>
          {s.settings.client}
          <input name="client" defaultValue={sso.oidc_client_id} />
        </label>
        <label>
          {s.settings.claim}
          <input name="claim" defaultValue={sso.oidc_group_claim} />
        </label>
        <label>
          {s.settings.mappings}
          <textarea
            name="mappings"
            class="mono"
            rows={5}
            placeholder="admins=admin"
            defaultValue={Object.entries(sso.group_role_mappings)
              .map(([group, role]) => `${group}=${role}`)
              .join("\n")}
          />
        </label>
        {!isReadOnly && (
          <button type="submit" class="primary">
            {s.save}
          </button>
        )}
      </fieldset>
    </form>
  );
}

