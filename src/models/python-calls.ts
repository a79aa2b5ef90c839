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
  let at = from;

  function take(form: RegExp): RegExpExecArray | null {
    form.lastIndex = at;
    const found = form.exec(text);
    if (found !== null) at = form.lastIndex;
    return found;
  }

  function startsCall(): boolean {
    NAME.lastIndex = at;
    return NAME.test(text);
  }

  function skips(sign: string): boolean {
    let next = at;
    while (/\s/u.test(text[next] ?? '')) next += 1;
    if (text[next] !== sign) return false;
    at = next + 1;
    return true;
  }

  function expect(sign: string): void {
    if (!skips(sign)) throw new OtherText();
  }

  function call(isPrinted = false): PythonCalls['calls'][number] {
    const name = take(NAME)?.[1];
    if (name === undefined) throw new OtherText();
    if (name === 'print' && !isPrinted) {
      const printed = call(true);
      expect(')');
      return printed;
    }
    const values: [string, unknown][] = [];
    while (!skips(')')) {
      if (values.length > 0) expect(',');
      if (values.length > 0 && skips(')')) break;
      const key = take(KEY)?.[1];
      if (key === undefined) throw new OtherText();
      values.push([key, value(0)]);
    }
    return { name, json: JSON.stringify(Object.fromEntries(values)) };
  }

  function value(level: number): unknown {
    if (level > MOST_LEVELS) throw new OtherText();
    const word = take(WORD);
    if (word !== null) {
      const [, yes, no, , number] = word;
      if (number !== undefined) return Number(number.replaceAll('_', ''));
      return yes !== undefined ? true : no !== undefined ? false : null;
    }
    if (skips('{')) return Object.fromEntries(items('}', () => entry(level)));
    if (skips('[')) return items(']', () => value(level + 1));
    const quote = take(QUOTE);
    if (quote === null) throw new OtherText();
    return words(quote[0].trim());
  }

  function entry(level: number): [string, unknown] {
    const key = value(level + 1);
    expect(':');
    return [String(key), value(level + 1)];
  }

  function items<Item>(closing: string, read: () => Item): Item[] {
    const found: Item[] = [];
    while (!skips(closing)) {
      if (found.length > 0) expect(',');
      if (found.length > 0 && skips(closing)) break;
      found.push(read());
    }
    return found;
  }

  function words(quote: string): string {
    let said = '';
    for (let from = at; at < text.length; at += 1) {
      if (text.startsWith(quote, at)) {
        said += text.slice(from, at);
        at += quote.length;
        return said;
      }
      if (text[at] !== '\\') continue;
      const sign = text[at + 1] ?? '';
      const code = /^(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))/.exec(text.slice(at + 1, at + 6));
      const written =
        code === null
          ? (ESCAPES[sign] ?? sign)
          : String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? '', 16));
      said += text.slice(from, at) + written;
      at += code === null ? 1 : code[0].length;
      from = at + 1;
    }
    at = text.length;
    throw new OtherText();
  }

  try {
    const calls: PythonCalls['calls'] = [];
    if (skips('[')) {
      do calls.push(call());
      while (skips(','));
      expect(']');
    } else {
      do calls.push(call());
      while (skips(';') || startsCall());
    }
    return { calls, end: at };
  } catch (error) {
    if (!(error instanceof OtherText)) throw error;
    HALF.lastIndex = at;
    return HALF.test(text) ? 'open' : null;
  }
}
