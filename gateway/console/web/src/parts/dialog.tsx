/** Dialogs: the browser's own, which keeps the focus inside and closes on Escape. One at a time. */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Store } from "../api/store";
import { s } from "../strings";
import { Icon } from "./icons";
import { toast } from "./toast";

const open = new Store<VNode | null>(null);

export const show = (content: VNode): void => open.set(content);
export const hide = (): void => open.set(null);

export function Dialogs() {
  const content = open.use();
  return content;
}

interface DialogProps {
  title: string;
  children: ComponentChildren;
  isWide?: boolean;
}

export function Dialog({ title, children, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={hide}
      onClick={(event) => event.target === element.current && hide()}
    >
      <div class="dialog">
        <header>
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="plain" aria-label={s.close} onClick={hide}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface FormProps {
  title: string;
  submit: string;
  isDangerous?: boolean;
  isWide?: boolean;
  children: ComponentChildren;
  onSubmit: (form: FormData) => Promise<string | void>; // what was done, to be told
}

/** A dialog with fields and one action. It stays open, with the reason, when the server refuses. */
export function FormDialog({ title, submit, isDangerous = false, isWide = false, children, onSubmit }: FormProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const done = await onSubmit(new FormData(event.currentTarget as HTMLFormElement));
      hide();
      if (done) toast(done);
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} isWide={isWide}>
      <form onSubmit={(event) => void send(event)}>
        <div class="fields">{children}</div>
        {error && (
          <p class="refused" role="alert">
            {error}
          </p>
        )}
        <footer>
          <button type="button" onClick={hide}>
            {s.cancel}
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={isBusy}>
            {isBusy ? s.working : submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: ComponentChildren;
  submit: string;
  retype?: string; // a name that must be typed, for what cannot be undone
  onConfirm: () => Promise<string | void>;
}

export function Confirm({ title, text, submit, retype, onConfirm }: ConfirmProps) {
  return (
    <FormDialog
      title={title}
      submit={submit}
      isDangerous
      onSubmit={async (form) => {
        if (retype !== undefined && form.get("retype") !== retype) throw new Error(s.retypeWrong(retype));
        return onConfirm();
      }}
    >
      <p>{text}</p>
      {retype !== undefined && (
        <label>
          {s.retype(retype)}
          <input name="retype" autocomplete="off" autofocus required />
        </label>
      )}
    </FormDialog>
  );
}
