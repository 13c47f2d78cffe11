import "../../src/holdfast/api/pages/static/tokens.css";
import "@mantine/core/styles/baseline.css";
import "@mantine/core/styles/default-css-variables.css";
import "@mantine/core/styles/global.css";
import "@mantine/core/styles/UnstyledButton.css";
import "@mantine/core/styles/CloseButton.css";
import "@mantine/core/styles/Overlay.css";
import "@mantine/core/styles/Paper.css";
import "@mantine/core/styles/Popover.css";
import "@mantine/core/styles/ScrollArea.css";
import "@mantine/core/styles/ModalBase.css";
import "@mantine/core/styles/Modal.css";
import "@mantine/core/styles/Menu.css";
import "./app/base.css";
import "./app/shell.css";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { newRelease } from "./app/flag";
import { ignoreSecondPresses } from "./app/secondPress";
import { direction } from "./locales/text";
import { followSignOut } from "./services/session";

// A part that is loaded later is not there any more: the server was upgraded meanwhile.
window.addEventListener("vite:preloadError", () => newRelease.raise());
followSignOut();
ignoreSecondPresses(document);
document.documentElement.dir = direction;
const place = document.getElementById("root");
if (place !== null) createRoot(place).render(<App />);
