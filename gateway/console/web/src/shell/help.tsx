/** What the keys do. */

import { Dialog } from "../parts/dialog";
import { s } from "../strings";
import { may } from "../api/session";
import { PAGES } from "./pages";

export function HelpDialog() {
  return (
    <Dialog title={s.help.title} isWide>
      <div class="keys">
        <dl>
          {s.help.keys.map(([key, text]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <dl>
          {PAGES.filter((page) => may(page.needs)).map((page) => (
            <div key={page.key}>
              <dt>
                <kbd>g</kbd> <kbd>{page.key}</kbd>
              </dt>
              <dd>{page.title}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}
