/** `shell` of an agent on a task, and of an owner in a control chat: which folders it shows, and what it sets. */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { AgentPlace } from '../../../src/core/authorisation.js';
import { systemClock } from '../../../src/core/clock.js';
import { commandEnv } from '../../../src/core/command-env.js';
import { shell } from '../../../src/tools/shell/shell.js';
import { askerWho } from '../../harness/asker.js';
import { describeWithBubblewrap } from '../../harness/bubblewrap.js';
import { CALLER, HERE, MEDIA, makeHome, WORK } from '../files/support.js';

async function setUp(sandbox: 'bubblewrap' | 'none', changes: Partial<AgentPlace> = {}) {
  const home = await makeHome();
  const at = (path: string) => join(home.home, path);
  for (const file of [
    'config.yaml',
    'groups/AGENTS.md',
    'data/coterie.db',
    'other/a.txt',
    'project/own/coterie.db',
  ]) {
    await home.put(file, 'SECRET');
  }
  await home.put('project/a.txt', 'mine');
  await home.put('project/sub/b.txt', 'deep');
  await home.put(`${MEDIA}/sent.txt`, 'sent');
  await home.put('data/skills/weather/SKILL.md', 'skill');
  await mkdir(at('data/workspace'), { recursive: true });
  const tool = shell({
    folders: { ...home.folders, hidden: [...home.folders.hidden, at('project/own')] },
    clock: systemClock,
    newId: randomUUID,
    settings: { sandbox, network: false, env: [], timeoutSeconds: 20, memoryMb: 512 },
    environment: { PATH: process.env.PATH },
  });
  const agent: AgentPlace = {
    ...{ id: 'utility', taskId: 't1', cwd: at('project'), roots: [at('project'), at('data/workspace')] },
    env: { OPENCLAW_WORKSPACE: at('data/workspace'), MEMORY_DIR: at('data/workspace/memory') },
    space: at('data/agents/utility/chats/telegram_1'),
    shared: { folder: at('data/agents/utility/internal_space'), mayWrite: true },
    ...changes,
  };
  const run = (command: string, given: object = {}) =>
    home.call(tool, { command, ...given }, { authorisation: { ...CALLER, agent } });
  const owner = { ...CALLER, controlChats: [HERE], asker: askerWho({ own: true }) };
  const runAsOwner = (command: string) => home.call(tool, { command }, { authorisation: owner });
  return { ...home, at, tool, caller: { ...CALLER, agent }, run, runAsOwner };
}

/** What capability-evolver looks for (its version 1.10.0), in a few lines. */
const EVOLVER = `
for file in "$OPENCLAW_WORKSPACE/MEMORY.md" "$OPENCLAW_WORKSPACE/USER.md"; do
  cat "$file" >/dev/null 2>&1 || echo "[$(basename "$file") MISSING]"
done
[ -d "$OPENCLAW_WORKSPACE/skills" ] && ls "$OPENCLAW_WORKSPACE/skills/" >/dev/null 2>&1 || echo NO_SKILLS_DIR
[ -d "$MEMORY_DIR" ] && echo "today: noted" >> "$MEMORY_DIR/$(date -u +%F).md" || echo NO_MEMORY_DIR
ls "$OPENCLAW_WORKSPACE/skills/"
echo "args: $VIAP_ARGS"
`;

describe.each(['bubblewrap', 'none'] as const)('with sandbox: %s', (sandbox) => {
  const described = sandbox === 'none' ? describe : describeWithBubblewrap;
  described('a command of an agent', () => {
    test('begins in its folder, and reaches its folders by their real paths', async () => {
      const { run, at } = await setUp(sandbox);
      expect((await run('pwd; cat a.txt; echo x > made.txt')).content).toBe(
        `${at('project')}\nmine\n[exit code 0]`,
      );
      expect(await readFile(at('project/made.txt'), 'utf8')).toBe('x\n');
      expect((await run('cat b.txt', { cwd: 'sub' })).content).toContain('deep');
      expect((await run('pwd', { cwd: at('data/workspace') })).content).toContain(at('data/workspace'));
      expect((await run(`echo y > ${at('data/agents/utility/internal_space/MEMORY.md')}`)).failed).toBe(
        false,
      );
      for (const cwd of ['..', at('other'), at('data'), at('project/own'), '/etc']) {
        expect(await run('pwd', { cwd })).not.toHaveProperty('results');
      }
    });

    test('whose folder lies outside of all that is allowed is refused, with a plain sentence', async () => {
      const { run, at } = await setUp(sandbox, { cwd: null });
      const result = await run('touch made.txt');
      expect(result).toMatchObject({ failed: true, content: expect.stringContaining('agents.roots') });
      expect(result).not.toHaveProperty('results');
      expect(await readdir(at('project'))).not.toContain('made.txt');
      const outside = await setUp(sandbox, { cwd: '/nowhere/at/all' });
      expect(await outside.run('pwd')).not.toHaveProperty('results');
    });

    test('whose folder lies outside asks nobody', async () => {
      const { tool, caller } = await setUp(sandbox, { cwd: null });
      expect(tool.refusalHere?.(caller)).toContain('agents.roots');
      const inside = await setUp(sandbox);
      expect(inside.tool.refusalHere?.(inside.caller)).toBeNull();
    });

    test('plays capability-evolver: it finds all that it looks for, and what stood there stays', async () => {
      const { run, at, put } = await setUp(sandbox);
      await put('evolve.sh', EVOLVER);
      await writeFile(at('project/evolve.sh'), EVOLVER);
      await put('data/workspace/MEMORY.md', 'kept');
      const { content, failed } = await run('sh evolve.sh --review');
      expect(failed).toBe(false);
      expect(content).toBe('weather\nargs: \n[exit code 0]');
      expect(await readFile(at('data/workspace/MEMORY.md'), 'utf8')).toBe('kept');
      expect(await readFile(at('data/workspace/USER.md'), 'utf8')).toBe('');
      expect(await readlink(at('data/workspace/skills'))).toBe('../skills');
      expect(await readdir(at('data/workspace/memory'))).toHaveLength(1);
    });

    test('says what is missing where the environment names another folder', async () => {
      const { run, at } = await setUp(sandbox, {
        env: { OPENCLAW_WORKSPACE: '/nowhere', MEMORY_DIR: '/nowhere' },
      });
      await writeFile(at('project/evolve.sh'), EVOLVER);
      const { content } = await run('sh evolve.sh');
      for (const sign of ['[MEMORY.md MISSING]', '[USER.md MISSING]', 'NO_SKILLS_DIR', 'NO_MEMORY_DIR']) {
        expect(content).toContain(sign);
      }
    });

    test('leaves alone what stands in the place of files and links of the workspace', async () => {
      const { run, at, put } = await setUp(sandbox);
      await put('data/workspace/skills/own/SKILL.md', 'own');
      await symlink('/nowhere', at('data/workspace/USER.md'));
      await writeFile(at('data/workspace/memory'), 'a file');
      expect((await run('true')).failed).toBe(false);
      expect((await lstat(at('data/workspace/skills'))).isDirectory()).toBe(true);
      expect(await readlink(at('data/workspace/USER.md'))).toBe('/nowhere');
      expect(await readFile(at('data/workspace/memory'), 'utf8')).toBe('a file');
    });

    test('has the environment of its task, but for what decides how programs are found and loaded', async () => {
      const env = {
        VIAP_ARGS: '["--review"]',
        API_TOKEN: 'hush-hush-42',
        ODD: 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789',
        ...{
          PATH: '/evil',
          HOME: '/evil',
          LD_PRELOAD: '/evil.so',
          NODE_OPTIONS: '--evil',
          BASH_ENV: '/evil',
        },
        ...{ 'A B': 'x', 'X=Y': 'x', NUL: 'a\0b', LONG: 'x'.repeat(200_000) },
      };
      const { run } = await setUp(sandbox, { env });
      const { content, results } = await run(
        'env; echo "again: $API_TOKEN $ODD" >&2; test "$API_TOKEN" = hush-hush-42',
      );
      expect(results?.code).toBe(0);
      expect(content).toContain('VIAP_ARGS=["--review"]');
      expect(content).toContain('API_TOKEN=[redacted]');
      expect(`${content}${JSON.stringify(results)}`).not.toMatch(/hush|sk-proj|\/evil|--evil/);
      expect(content).toMatch(/\[not set in the environment: PATH, HOME, LD_PRELOAD, .*LONG\]/);
    });
  });
});

describeWithBubblewrap('the sandbox of an agent', () => {
  test('shows nothing but its folders: not what is hidden in one of them, nor lets it be moved', async () => {
    const { run, at, home } = await setUp('bubblewrap');
    for (const path of [
      'config.yaml',
      'groups/AGENTS.md',
      'data/coterie.db',
      'other/a.txt',
      'project/own/coterie.db',
    ]) {
      const { content, failed } = await run(`cat ${at(path)}`);
      expect({ path, failed, content }).toEqual({
        path,
        failed: true,
        content: expect.not.stringContaining('SECRET'),
      });
    }
    expect(
      (await run('mv own elsewhere || rmdir own; echo x > own/y; grep -r SECRET . && echo found')).content,
    ).not.toContain('found');
    expect((await run(`ls -A ${at('data')} ${home}`)).content).not.toMatch(/coterie\.db|groups|config/);
    expect(await readFile(at('project/own/coterie.db'), 'utf8')).toBe('SECRET');
    expect((await run(`echo x > ${at('data/skills/weather/SKILL.md')}`)).failed).toBe(true);
    expect((await run('cat /coterie/media/sent.txt; echo x > /coterie/media/y')).content).toMatch(
      /^sent\n\[stderr\]/,
    );
  });

  test('keeps in its place the way to what is hidden', async () => {
    const { at, run } = await setUp('bubblewrap', {});
    await rm(at('project/own'), { recursive: true });
    await mkdir(at('project/way/own'), { recursive: true });
    await symlink(at('project/way/own'), at('project/own'));
    await writeFile(at('project/way/own/key'), 'SECRET');
    expect((await run('mv way gone; cat gone/own/key way/own/key')).content).not.toContain('SECRET\n');
    expect(await readFile(at('project/way/own/key'), 'utf8')).toBe('SECRET');
  });
});

describe.each(['bubblewrap', 'none'] as const)('an owner in a control chat, with sandbox: %s', (sandbox) => {
  const described = sandbox === 'none' ? describe : describeWithBubblewrap;
  described('runs a command', () => {
    test('in the workspace, filled, with skills and what people sent', async () => {
      const { runAsOwner, at } = await setUp(sandbox);
      const { content } = await runAsOwner(
        'echo x > made.txt; cat media/sent.txt; ls; cat skills/weather/SKILL.md',
      );
      expect(content).toMatch(
        /^sentMEMORY\.md\nUSER\.md\nmade\.txt\nmedia\nmemory\nskills\nskill\n\[exit code 0\]$/,
      );
      expect(await readFile(at('data/workspace/made.txt'), 'utf8')).toBe('x\n');
      expect(await readdir(at('data'))).not.toContain(WORK);
    });
  });
});

describe('the environment of a task', () => {
  test('takes no names that a shell or a loader would obey', () => {
    const given = {
      OK: '1',
      path: 'x',
      ld_preload: 'x',
      DYLD_INSERT_LIBRARIES: 'x',
      COTERIE_COMMAND: 'x',
      '1A': 'x',
      '': 'x',
    };
    expect(commandEnv(given)).toEqual({
      env: { OK: '1' },
      refused: expect.arrayContaining([
        'path',
        'ld_preload',
        'DYLD_INSERT_LIBRARIES',
        'COTERIE_COMMAND',
        '1A',
        '',
      ]),
    });
  });

  test.each([
    ...[
      'PATH',
      'IFS',
      'ENV',
      'BASH_ENV',
      'SHELLOPTS',
      'BASH_FUNC_ls',
      'PROMPT_COMMAND',
      'LD_PRELOAD',
      'LD_AUDIT',
    ],
    ...[
      'DYLD_INSERT_LIBRARIES',
      'PERL5OPT',
      'PERL5LIB',
      'PERL5DB',
      'PYTHONPATH',
      'PYTHONSTARTUP',
      'PYTHONHOME',
    ],
    ...[
      'NODE_OPTIONS',
      'NODE_PATH',
      'RUBYOPT',
      'RUBYLIB',
      'GIT_SSH_COMMAND',
      'GIT_EXTERNAL_DIFF',
      'GIT_CONFIG_COUNT',
    ],
    ...[
      'JAVA_TOOL_OPTIONS',
      '_JAVA_OPTIONS',
      'JDK_JAVA_OPTIONS',
      'CLASSPATH',
      'MAKEFLAGS',
      'CC',
      'RUSTC_WRAPPER',
      'PAGER',
    ],
    ...[
      'LESSOPEN',
      'EDITOR',
      'BROWSER',
      'npm_config_script_shell',
      'DOTNET_STARTUP_HOOKS',
      'LUA_INIT',
      'PHPRC',
      'ZDOTDIR',
    ],
    ...[
      'XDG_CONFIG_HOME',
      'OPENSSL_CONF',
      'GCONV_PATH',
      'GLIBC_TUNABLES',
      'R_PROFILE_USER',
      'ERL_FLAGS',
      'VIMINIT',
      'HOME',
    ],
  ])('%s decides what a program runs', (name) => {
    expect(commandEnv({ [name]: 'x' })).toEqual({ env: {}, refused: [name] });
  });

  test.each([
    ...[
      'API_TOKEN',
      'VIAP_ARGS',
      'OPENCLAW_WORKSPACE',
      'MEMORY_DIR',
      'NODE_ENV',
      'LANG',
      'TZ',
      'DEBUG',
      'CI',
      'VIMEO_TOKEN',
    ],
    ...[
      'MANAGER',
      'LESSON',
      'PATHS',
      'CARGO_REGISTRY_TOKEN',
      'NPM_TOKEN',
      'OPENAI_API_KEY',
      'HTTP_PROXY',
      'TMPDIR',
      'MAKER',
    ],
  ])('%s does not', (name) => {
    expect(commandEnv({ [name]: 'x' })).toEqual({ env: { [name]: 'x' }, refused: [] });
  });

  test('is bounded as a whole', () => {
    const given = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`V${n}`, 'x'.repeat(90_000)]));
    expect(Object.keys(commandEnv(given).env)).toHaveLength(11);
  });
});
