/** Colours of code, loaded with the first block of code. The library's output is replaced: pieces with a kind, no HTML. */
import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

export type Piece = string | { kind: string; inside: Piece[] };

const LANGUAGES = {
  ...{ bash, c, cpp, css, diff, go, ini, java, javascript, json, markdown, python },
  ...{ ruby, rust, sql, typescript, xml, yaml },
};
for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language);

/** Takes what the library finds, in its order. The verbs are the library's. */
class Pieces {
  readonly all: Piece[] = [];
  private readonly open: Piece[][] = [this.all];
  readonly openNode = this.startScope;
  readonly closeNode = this.endScope;

  addText(text: string): void {
    if (text !== '') this.open.at(-1)?.push(text);
  }

  startScope(name: string): void {
    const inside: Piece[] = [];
    this.open.at(-1)?.push({ kind: `code-${name.split('.')[0]}`, inside });
    this.open.push(inside);
  }

  endScope(): void {
    this.open.pop();
  }

  /** Code of another language inside: a style sheet in a page. */
  __addSublanguage(inner: Pieces): void {
    this.open.at(-1)?.push({ kind: 'code-inner', inside: inner.all });
  }

  finalize(): void {}

  toHTML(): string {
    return '';
  }
}

highlighter.configure({ __emitter: Pieces });

/** A longer line would hold up the page: the library takes square time on one endless word, and on empty lines. */
const LONGEST_LINE = 1_000;
const ENDLESS = /\S{301}|(?:\n[^\S\n]*){201}/;
/** Of INI and TOML, whose keys with dots it seeks over ends of lines. */
const MOST_INI_CHARS = 10_000;

/** The code itself if the language is not known, or the code is no lines of a person. */
export function highlighted(code: string, language: string): Piece[] {
  const known = highlighter.getLanguage(language);
  const isLong = known === highlighter.getLanguage('ini') && code.length > MOST_INI_CHARS;
  if (known === undefined || isLong || ENDLESS.test(code)) return [code];
  if (code.split('\n').some((line) => line.length > LONGEST_LINE)) return [code];
  const { _emitter } = highlighter.highlight(code, { language, ignoreIllegals: true });
  return (_emitter as unknown as Pieces).all;
}
