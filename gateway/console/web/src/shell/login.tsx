/** The way in: a key, the admin password, or a sign-on that the server offers. */

import { useState } from "preact/hooks";
import { ROOT } from "../api/client";
import { logIn } from "../api/session";
import { Bird } from "../parts/icons";
import { s } from "../strings";

const hasSignOn = document.querySelector<HTMLMetaElement>('meta[name="sign-on"]')?.content === "on";

export function Login() {
  const [isPassword, setPassword] = useState(false);
  const [secret, setSecret] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await logIn(secret.trim(), isPassword);
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason));
      setBusy(false);
    }
  };
  return (
    <main class="alone">
      <form class="card login" onSubmit={(event) => void send(event)}>
        <Bird />
        <h1>{s.login.title}</h1>
        <label>
          {isPassword ? s.login.password : s.login.key}
          <input
            name="secret"
            type="password"
            autocomplete="current-password"
            value={secret}
            onInput={(event) => setSecret(event.currentTarget.value)}
            required
            autofocus
          />
        </label>
        {error && (
          <p class="refused" role="alert">
            {error}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? s.working : s.login.submit}
        </button>
        {hasSignOn && (
          <a class="button" href={new URL("auth/oidc/login", ROOT).href}>
            {s.login.signOn}
          </a>
        )}
        <button type="button" class="quiet" onClick={() => setPassword(!isPassword)}>
          {isPassword ? s.login.useKey : s.login.usePassword}
        </button>
      </form>
    </main>
  );
}
