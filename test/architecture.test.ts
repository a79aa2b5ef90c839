/** Holds the two rules of direction, and that no imports go round in a circle (types included). */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** What every file imports of the others, as paths relative to `root`. */
async function readImports(root: string): Promise<Map<string, string[]>> {
  const names = await readdir(root, { recursive: true });
  const files = names.filter((name) => name.endsWith('.ts'));
  const imports = new Map<string, string[]>();
  for (const file of files) {
    const source = await readFile(join(root, file), 'utf8');
    imports.set(
      file,
      relativeImports(source).map((target) =>
        relative(root, resolve(root, dirname(file), target)).replace(/\.js$/, '.ts'),
      ),
    );
  }
  return imports;
}

/** `import … from`, `export … from`, `import '…'`, `import('…')`, also of types; comments do not count. */
function relativeImports(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const found = code.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)(['"])(\.[^'"]*)\1/g);
  return [...found].flatMap((match) => (match[2] === undefined ? [] : [match[2]]));
}

function folderOf(file: string): string | null {
  return file.includes('/') ? (file.split('/')[0] ?? null) : null;
}

function againstDirection(imports: Map<string, string[]>): string[] {
  return [...imports].flatMap(([file, targets]) => {
    const home = folderOf(file);
    if (home === null) return [];
    return targets
      .filter((target) => folderOf(target) !== home && (home === 'core' || folderOf(target) !== 'core'))
      .map((target) => `${file} imports ${target}`);
  });
}

function circles(imports: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  function visit(file: string, path: string[]): void {
    const seenAt = path.indexOf(file);
    if (seenAt >= 0) found.push([...path.slice(seenAt), file].join(' → '));
    if (seenAt >= 0 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  }
  for (const file of imports.keys()) visit(file, []);
  return found;
}

describe('the source', () => {
  let imports: Map<string, string[]>;
  beforeAll(async () => {
    imports = await readImports(resolve(import.meta.dirname, '../src'));
  });

  it('is scanned: files and imports are found', () => {
    expect(imports.size).toBeGreaterThan(20);
    expect(imports.get('core/channel.ts')).toEqual(['core/ids.ts', 'core/message.ts']);
  });

  it('imports only files that are there', () => {
    const missing = [...imports].flatMap(([file, targets]) =>
      targets
        .filter((target) => !imports.has(target) && target.endsWith('.ts'))
        .map((target) => `${file} → ${target}`),
    );
    expect(missing).toEqual([]);
  });

  it('keeps the direction: a folder imports core and itself; core imports core', () => {
    expect(againstDirection(imports)).toEqual([]);
  });

  it('has no circles, types included', () => {
    expect(circles(imports)).toEqual([]);
  });
});

describe('the scan', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'coterie-architecture-'));
    const files = {
      'main.ts': `import { a } from './one/a.js';`,
      'core/words.ts': `import type { A } from '../one/a.js';`,
      'one/a.ts': `/* import './never.js' */\nimport {\n  b,\n} from './b.js';\n// import '../two/never.js'`,
      'one/b.ts': `export type { A } from './a.js';\nconst late = () => import('../two/c.js');`,
      'two/c.ts': `import type { W } from '../core/words.js';\nexport type R = import('../main.js').R;`,
    };
    for (const [name, source] of Object.entries(files)) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await writeFile(join(root, name), source);
    }
  });
  afterAll(() => rm(root, { recursive: true }));

  it('sees what breaks the rules', async () => {
    const imports = await readImports(root);
    expect(againstDirection(imports).sort()).toEqual([
      'core/words.ts imports one/a.ts',
      'one/b.ts imports two/c.ts',
      'two/c.ts imports main.ts',
    ]);
    expect(circles(imports)).toContain('one/a.ts → one/b.ts → one/a.ts');
  });
});
