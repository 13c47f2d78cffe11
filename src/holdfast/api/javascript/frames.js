// A text/event-stream, read by the rules of the HTML standard.

/** Takes text as it comes and gives what is whole: `{id, type, text}`, `{retry}` and `{beat: true}`. */
export class Frames {
  #rest = "";
  #type = "";
  #data = [];
  #id = null;
  #first = true;

  *push(text) {
    let given = text;
    if (this.#first && given) {
      this.#first = false;
      given = given.replace(/^\uFEFF/, "");
    }
    const whole = this.#rest + given;
    // A CR at the end may be half of a CRLF.
    const lines = whole.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) yield* this.#line(line);
  }

  *#line(line) {
    if (line === "") {
      yield* this.#dispatch();
      return;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (field === "") yield { beat: true };
    else if (field === "event") this.#type = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) yield { retry: Number(value) };
  }

  *#dispatch() {
    const [type, data] = [this.#type, this.#data];
    this.#type = "";
    this.#data = [];
    // An id alone, or where a stream begins: moves the place and tells nobody.
    if (data.length && type !== "stream.opened") yield { id: this.#id, type: type || "message", text: data.join("\n") };
    else if (this.#id !== null) yield { place: this.#id };
  }
}
