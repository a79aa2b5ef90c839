/**
 * Step 5, inside the model client: calls that a model wrote as Python, as Llama 3.2 and 4 (`[name(key="…")]`), Gemma and Gemini
 * (`name(key="…")`, also in `print(…)`) and OLMo (a line each) do. Only names, and literals as keyword arguments, are read. Pure;
 * the time it takes grows with the text and not faster.
 */
const MOST_LEVELS = 50;
const NAME = /\s*([A-Za-z_][\w.-]{0,199})\s*\(/uy;
const KEY = /\s*([A-Za-z_]\w{0,199})\s*=/uy;
const WORD =
  /\s*(?:(True|true)|(False|false)|(None|null)|([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))(?![\w.])/uy;
const QUOTE = /\s*(?:"""|'''|"|')/uy;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '\n': '' };

/** With what may be left of a call where its text ends within it. */
const HALF = /\s*[\w.+-]{0,200}$/uy;

/** Something else than calls. */
class OtherText extends Error {}

export interface PythonCalls {
  calls: { name: string; json: string }[];
  /** Behind the last of them. */
  end: number;
}

/** Calls that begin at `from`, alone or as a list; `open`: the text ends within them; null: it is anything else. */
export function pythonCallsAt(text: string, from: number): PythonCalls | 'open' | null {
  const reader = new PythonReader(text, from);
  try {
    return reader.calls();
  } catch (error) {
    if (!(error instanceof OtherText)) throw error;
    HALF.lastIndex = reader.at;
    return HALF.test(text) ? 'open' : null;
  }
}

class PythonReader {
  constructor(
    private readonly text: string,
    /** What is read next. */
    public at: number,
  ) {}

  calls(): PythonCalls {
    const calls: PythonCalls['calls'] = [];
    if (this.skips('[')) {
      do calls.push(this.call());
      while (this.skips(','));
      this.expect(']');
    } else {
      do calls.push(this.call());
      while (this.skips(';') || this.startsCall());
    }
    return { calls, end: this.at };
  }

  private take(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.at;
    const found = form.exec(this.text);
    if (found !== null) this.at = form.lastIndex;
    return found;
  }

  private startsCall(): boolean {
    NAME.lastIndex = this.at;
    return NAME.test(this.text);
  }

  private skips(sign: string): boolean {
    let next = this.at;
    while (/\s/u.test(this.text[next] ?? '')) next += 1;
    if (this.text[next] !== sign) return false;
    this.at = next + 1;
    return true;
  }

  private expect(sign: string): void {
    if (!this.skips(sign)) throw new OtherText();
  }

  private call(isPrinted = false): PythonCalls['calls'][number] {
    const name = this.take(NAME)?.[1];
    if (name === undefined) throw new OtherText();
    if (name === 'print' && !isPrinted) {
      const printed = this.call(true);
      this.expect(')');
      return printed;
    }
    const values: [string, unknown][] = [];
    while (!this.skips(')')) {
      if (values.length > 0) this.expect(',');
      if (values.length > 0 && this.skips(')')) break;
      const key = this.take(KEY)?.[1];
      if (key === undefined) throw new OtherText();
      values.push([key, this.value(0)]);
    }
    return { name, json: JSON.stringify(Object.fromEntries(values)) };
  }

  private value(level: number): unknown {
    if (level > MOST_LEVELS) throw new OtherText();
    const word = this.take(WORD);
    if (word !== null) {
      const [, yes, no, , number] = word;
      if (number !== undefined) return Number(number.replaceAll('_', ''));
      return yes !== undefined ? true : no !== undefined ? false : null;
    }
    if (this.skips('{')) return Object.fromEntries(this.items('}', () => this.entry(level)));
    if (this.skips('[')) return this.items(']', () => this.value(level + 1));
    const quote = this.take(QUOTE);
    if (quote === null) throw new OtherText();
    return this.words(quote[0].trim());
  }

  private entry(level: number): [string, unknown] {
    const key = this.value(level + 1);
    this.expect(':');
    return [String(key), this.value(level + 1)];
  }

  private items<Item>(closing: string, read: () => Item): Item[] {
    const found: Item[] = [];
    while (!this.skips(closing)) {
      if (found.length > 0) this.expect(',');
      if (found.length > 0 && this.skips(closing)) break;
      found.push(read());
    }
    return found;
  }

  private words(quote: string): string {
    let said = '';
    for (let from = this.at; this.at < this.text.length; this.at += 1) {
      if (this.text.startsWith(quote, this.at)) {
        said += this.text.slice(from, this.at);
        this.at += quote.length;
        return said;
      }
      if (this.text[this.at] !== '\\') continue;
      const sign = this.text[this.at + 1] ?? '';
      const code = /^(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))/.exec(this.text.slice(this.at + 1, this.at + 6));
      const written =
        code === null
          ? (ESCAPES[sign] ?? sign)
          : String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? '', 16));
      said += this.text.slice(from, this.at) + written;
      this.at += code === null ? 1 : code[0].length;
      from = this.at + 1;
    }
    this.at = this.text.length;
    throw new OtherText();
  }
}
