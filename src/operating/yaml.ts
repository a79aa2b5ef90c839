/**
 * Reads a YAML file as plain data for the configuration: replaces `${NAME}` by environment variables and `${file:PATH}`
 * by files, and reports every fault with its line. Never quotes the file, because it may contain secrets.
 */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { describe } from '../core/errors.js';
import { aliasesIn, problemsIn, type YamlFault } from './yaml-faults.js';

export interface YamlFile {
  /** Empty if the file is not YAML. null: a key without a value, or with an empty variable. */
  data: Record<string, unknown>;
  faults: YamlFault[];
  /** The environment variables used, and the keys down to the value that contains them. */
  variables: { name: string; value: string; path: string[] }[];
  /** The files behind `${file:PATH}`, and the keys down to the value that contains them. */
  secretFiles: { path: string; text: string; key: string[] }[];
  /** The start of a key's value, or of its nearest existing parent's. */
  positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null;
}

/** `folder`: of the file, for relative paths in it. */
export function readYaml(source: string, folder: string, environment: NodeJS.ProcessEnv): YamlFile {
  const lines = new LineCounter();
  // Keys that are not strings are rejected: error messages would quote their content.
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    stringKeys: true,
  });
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const file: YamlFile = {
    data: {},
    faults: problemsIn(document, source, lineAt),
    variables: [],
    secretFiles: [],
    positionOf(path) {
      for (let length = path.length; length > 0; length--) {
        const node: unknown = document.getIn(path.slice(0, length), true);
        if (isNode(node) && node.range) return { offset: node.range[0], line: lineAt(node.range[0]) };
      }
      return null;
    },
  };
  const { faults } = file;

  function resolved(value: unknown, path: string[]): unknown {
    if (typeof value === 'string') return substituted(value, path);
    if (Array.isArray(value)) return value.map((item, index) => resolved(item, [...path, String(index)]));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, given]) => {
      const known = faults.length;
      const inner = resolved(given, [...path, key]);
      return [key, inner === '' && given !== '' && faults.length === known ? null : inner];
    });
    return Object.fromEntries(entries);
  }

  /** `$${` is an escaped `${`. Not recursive. */
  function substituted(text: string, path: string[]): string {
    return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found, name: string | undefined) => {
      if (name === undefined) return '${';
      try {
        return outside(name, pathIn(name, found.endsWith('}')), path);
      } catch (error) {
        faults.push({ line: file.positionOf(path)?.line ?? null, path, message: describe(error) });
        return '';
      }
    });
  }

  function outside(name: string, secretPath: string | null, path: string[]): string {
    if (secretPath !== null) {
      const whole = resolve(folder, secretPath);
      const text = readSecretFile(whole);
      file.secretFiles.push({ path: whole, text, key: path });
      return text;
    }
    const value = environment[name];
    if (value === undefined) throw new Error(`expected the environment variable ${name}, but it is not set`);
    if (value !== '') file.variables.push({ name, value, path });
    return value;
  }

  const { contents } = document;
  if (faults.length > 0 || contents === null || (isScalar(contents) && contents.value === null)) return file;
  if (!isMap(contents)) {
    faults.push({ line: 1, path: [], message: 'expected keys and values, like `timezone: Europe/Berlin`' });
    return file;
  }
  try {
    file.data = resolved(document.toJS(), []) as Record<string, unknown>;
  } catch {
    // Faults found so far may be multiplied by aliases.
    faults.splice(0, faults.length, ...aliasesIn(document, lineAt));
  }
  return file;
}

/** The PATH of `${file:PATH}`; null for a variable. Throws an Error that says what was expected. */
function pathIn(name: string, isClosed: boolean): string | null {
  const path = /^file:(.*)$/s.exec(name)?.[1]?.trim() ?? null;
  if (path === '') throw new Error('expected a path behind file:');
  if (isClosed && (path !== null || /^[A-Za-z_]\w*$/.test(name))) return path;
  throw new Error(
    `expected the name of an environment variable between \${ and }; a literal \${ is written $\${`,
  );
}

/** Larger files are not a token, key or password. */
const MOST_BYTES = 64_000;

/** The text without its final newline. Throws an Error that says what was expected, never the content. */
function readSecretFile(path: string): string {
  const text = new TextDecoder('utf-8').decode(bytesOf(path)).replace(/(?<![\r\n])[\r\n]+$/, '');
  if (/[\0\ufffd]/.test(text)) throw new Error(`expected text in the file ${path}`);
  if (text === '') throw new Error(`expected a value in the file ${path}, but it is empty`);
  return text;
}

function bytesOf(path: string): Buffer {
  const tooLarge = new Error(`expected at most ${MOST_BYTES / 1000} kB in the file ${path}`);
  try {
    const found = statSync(path);
    // Reading a pipe would block the start for ever.
    if (!found.isFile()) throw new Error(`expected a file at ${path}, but it is none`);
    if (found.size > MOST_BYTES) throw tooLarge;
    const bytes = readFileSync(path);
    if (bytes.length > MOST_BYTES) throw tooLarge;
    return bytes;
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    const why = error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 'it is not there' : String(error.code);
    throw new Error(`expected a file at ${path} that can be read (${why})`);
  }
}
