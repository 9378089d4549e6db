/** The console begins here. */

import { render } from "preact";
import { App } from "./shell/app";
import "./style/base.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/pages.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
