/** The nonce of this response: the policy of the page allows no other inline style. */
const script = document.querySelector<HTMLScriptElement>("script[nonce]");

export const styleNonce = script?.nonce ?? "";
// Where the package that locks the scroll of a page behind a dialog looks for it.
Object.assign(globalThis, { __webpack_nonce__: styleNonce });
