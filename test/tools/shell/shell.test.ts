/** `shell`: what a command sees, what bounds it, and that nothing of it is left. Real commands, real sandbox. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, lstat, mkdir, readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { ToolFolders } from '../../../src/tools/files/roots.js';
import { type ShellParts, shell } from '../../../src/tools/shell/shell.js';
import { describeWithBubblewrap } from '../../harness/bubblewrap.js';
import { MEDIA, makeHome, WORK } from '../files/support.js';

const ENVIRONMENT = { PATH: process.env.PATH, LANG: 'C.UTF-8', SECRET_TOKEN: 'hush', LISTED: 'seen' };

async function setUp(
  settings: Partial<ShellParts['settings']> = {},
  { folders = {}, ...more }: Partial<Omit<ShellParts, 'folders'>> & { folders?: Partial<ToolFolders> } = {},
) {
  const home = await makeHome();
  await home.put('config.yaml', 'SECRET');
  await home.put('groups/AGENTS.md', 'SECRET');
  await home.put('data/coterie.db', 'SECRET');
  await home.put(`data/work/telegram_2/luna/a.txt`, 'SECRET');
  await home.put(`${MEDIA}/sent.txt`, 'sent');
  await home.put(`${WORK}/a.txt`, 'mine');
  const defaults = {
    sandbox: 'bubblewrap' as const,
    network: false,
    env: [],
    timeoutSeconds: 20,
    memoryMb: 512,
  };
  const tool = shell({
    folders: { ...home.folders, ...folders },
    clock: systemClock,
    newId: randomUUID,
    settings: { ...defaults, ...settings },
    environment: ENVIRONMENT,
    ...more,
  });
  const run = (command: string, given: object = {}, signal = new AbortController().signal) =>
    home.call(tool, { command, ...given }, { signal });
  return { ...home, tool, run };
}

/** Until the file is there: a command has come so far. */
async function appears(path: string): Promise<void> {
  for (;;) {
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      return;
    await sleep(10);
  }
}

/** Whether what a process writes to again and again comes to stand still, because the process has ended. */
async function comesToStand(path: string): Promise<boolean> {
  for (let rounds = 0; rounds < 20; rounds++) {
    const before = await readFile(path, 'utf8');
    await sleep(300);
    if ((await readFile(path, 'utf8')) === before) return true;
  }
  return false;
}

/** Ticks on in the background, in a session of its own, whatever it is told. */
const TICKS = `setsid bash -c 'trap "" TERM HUP INT; exec >/dev/null 2>&1 </dev/null; while :; do echo x >> ticks; sleep 0.02; done' & `;

describe.each(['bubblewrap', 'none'] as const)('with sandbox: %s', (sandbox) => {
  const described = sandbox === 'none' ? describe : describeWithBubblewrap;
  described('a command', () => {
    test('runs in the working folder, and tells output and exit code', async () => {
      const { run, home } = await setUp({ sandbox });
      expect(await run('cat a.txt; echo err >&2; echo new > b.txt; exit 3')).toEqual({
        content: 'mine\n[stderr]\nerr\n[exit code 3]',
        failed: true,
        results: { stdout: 'mine', stderr: 'err\n', code: 3 },
      });
      expect(await readFile(join(home, WORK, 'b.txt'), 'utf8')).toBe('new\n');
      expect(await run('true')).toMatchObject({ content: '[exit code 0]', failed: false });
      expect((await run('kill -9 $$')).content).toBe('[exit code 137: ended by SIGKILL]');
    });

    test('reads what people sent at media/, and begins in a folder', async () => {
      const { run, home } = await setUp({ sandbox });
      await mkdir(join(home, WORK, 'sub'));
      expect((await run('cat media/sent.txt')).content).toContain('sent');
      expect((await run('cat ../media/sent.txt && basename "$PWD"', { cwd: 'sub' })).content).toContain(
        'sub',
      );
      expect((await run('cat sent.txt', { cwd: 'media' })).content).toContain('sent');
      for (const cwd of ['..', '/etc', 'nowhere', 'a.txt', 'x\0']) {
        expect(await run('pwd', { cwd })).not.toHaveProperty('results');
      }
      expect(await run('echo a\0b')).not.toHaveProperty('results');
    });

    test('sees of the environment PATH, HOME, LANG, and what is listed', async () => {
      const { run } = await setUp({ sandbox, env: ['LISTED', 'NOT_THERE'] });
      const { content } = await run('env; cat /proc/self/environ | tr "\\0" "\\n"');
      expect(content).toContain('LISTED=seen');
      expect(content).not.toMatch(/hush|NOT_THERE/);
      const names = [...content.matchAll(/^(\w+)=/gm)].map(([, name]) => name);
      const allowed = ['PATH', 'HOME', 'LANG', 'LISTED', 'PWD', 'OLDPWD', 'SHLVL', '_'];
      expect(names.filter((name = '') => ![...allowed, 'COTERIE_COMMAND'].includes(name))).toEqual([]);
      expect(names.includes('COTERIE_COMMAND')).toBe(sandbox === 'none');
    });

    test('has no descriptors but its output, and nothing to read', async () => {
      const { run } = await setUp({ sandbox });
      const { content } = await run(
        'cat; read -r line; echo "read: $?"; for f in /proc/self/fd/*; do echo "$f"; done',
      );
      expect(content).toContain('read: 1');
      const descriptors = [...content.matchAll(/fd\/(\d+)/g)].map(([, number]) => Number(number));
      // 3 is the folder that is being listed; 255 is where bash reads its command, if anywhere.
      expect(descriptors.filter((each) => each > 3 && each !== 255)).toEqual([]);
    });

    test('that prints 50 MB is read to its end, and kept in part', async () => {
      const { run } = await setUp({ sandbox, timeoutSeconds: 55 });
      const bytes = 50_000_000;
      const { content, results } = await run(`echo begin; head -c ${bytes} /dev/zero; echo end`);
      expect(content.length).toBeLessThan(25_000);
      expect(content).toMatch(
        /^begin\n\ufffd+\n\[… \d+ bytes are left out …\]\n\ufffd+end\n\[exit code 0\]$/,
      );
      expect(content).toContain(`… ${bytes + 10 - 20_000} bytes`);
      expect(results?.stdout.length).toBeLessThan(25_000);
    });

    test('that ignores SIGTERM, forks and leaves its session ends at its deadline, with all that it started', async () => {
      const { run, home } = await setUp({ sandbox });
      const command = `${TICKS} (trap "" TERM; sleep 100) & trap "" TERM; while :; do sleep 0.1; done`;
      const began = Date.now();
      const result = await run(command, { timeout_seconds: 1 });
      expect(Date.now() - began).toBeLessThan(15_000);
      expect(result.content).toContain('it took longer than 1 seconds');
      expect(result).toMatchObject({ failed: true, results: { code: null } });
      expect(await comesToStand(join(home, WORK, 'ticks'))).toBe(true);
    });

    test('ends as a whole when the call is aborted, and leaves nothing behind when it ends itself', async () => {
      const { run, home } = await setUp({ sandbox });
      const stop = new AbortController();
      const running = run(`${TICKS} sleep 100`, {}, stop.signal);
      await appears(join(home, WORK, 'ticks'));
      stop.abort();
      expect((await running).content).toContain('stopped');
      expect(await comesToStand(join(home, WORK, 'ticks'))).toBe(true);
      const left = await run(`${TICKS} sleep 0.2; echo done`);
      expect(left.content).toContain('done');
      expect(await comesToStand(join(home, WORK, 'ticks'))).toBe(true);
      expect((await run('true', {}, AbortSignal.abort())).failed).toBe(true);
    });

    test('cannot have more memory, larger files or more processes than it may', async () => {
      const { run, home } = await setUp(
        { sandbox, memoryMb: 100 },
        { folders: { quota: { bytes: 3_000_000, entries: 100 } } },
      );
      const held = await run('python3 -c "x = bytearray(300_000_000)" || perl -e \'$x = "x" x 300_000_000\'');
      expect(held.failed).toBe(true);
      expect((await run('head -c 9000000 /dev/zero > big')).failed).toBe(true);
      expect((await lstat(join(home, WORK, 'big'))).size).toBeLessThanOrEqual(3_000_000);
      const many = await run('for i in $(seq 300); do sleep 15 & done; wait; echo unbounded');
      expect(many.content).not.toContain('unbounded');
      expect(many.content).toMatch(/more than 128 processes|Resource temporarily|fork/);
    });

    test('that fills its folder with many files is ended; a full folder can be emptied, and nothing else', async () => {
      const quota = { bytes: 1_000_000, entries: 50 };
      const { run, home } = await setUp({ sandbox }, { folders: { quota } });
      const filling = await run(
        'for i in $(seq 10000); do head -c 100000 /dev/zero > "f$i" || exit; sleep 0.01; done',
      );
      expect(filling.content).toContain('your working folder is full');
      expect((await run('echo x > more && cat more')).content).not.toMatch(/^x/);
      expect((await run('rm -f f*; ls')).content).toContain('a.txt');
      expect((await run('echo x > more && cat more')).content).toMatch(/^x/);
      expect(await readdir(join(home, WORK))).not.toContain('f1');
    });

    test('that holds much in removed files, with a name or without, is ended', async () => {
      const { run } = await setUp({ sandbox, timeoutSeconds: 40 });
      const hold =
        'for n in 3 4 5 6; do eval "exec $n> f$n"; rm f$n; head -c 70000000 /dev/zero >&$n; done; sleep 30; echo unbounded';
      const held = await run(hold);
      expect(held.content).toContain('it held too much in files that it had removed');
      expect(held.content).not.toContain('unbounded');
      const few = await run('exec 3> f; rm f; head -c 7000000 /dev/zero >&3; sleep 1.5; echo fine');
      expect(few.content).toContain('fine');
    }, 60_000);

    test('leaves no file that runs with the rights of its owner', async () => {
      const { run, home } = await setUp({ sandbox });
      await run(
        'mkdir -p d; cp /bin/true d/a; chmod 6755 d/a; cp d/a b; chmod 4711 b; chmod 2755 d; ls -l d/a',
      );
      for (const [path, mode] of [
        ['d/a', 0o755],
        ['b', 0o711],
      ] as const)
        expect((await lstat(join(home, WORK, path))).mode & 0o7777).toBe(mode);
    });

    test('without an authorisation is not run', async () => {
      const { call, tool, home } = await setUp({ sandbox });
      expect((await call(tool, { command: 'touch x' }, { authorisation: undefined })).failed).toBe(true);
      expect(await readdir(join(home, WORK))).toEqual(['a.txt']);
    });
  });
});

describeWithBubblewrap('the sandbox', () => {
  test('shows nothing of the gateway and of the machine but programs', async () => {
    const { run, home } = await setUp();
    const paths = ['config.yaml', 'groups/AGENTS.md', 'data/coterie.db', 'data/work/telegram_2/luna/a.txt'];
    for (const path of [
      ...paths.map((each) => join(home, each)),
      '../telegram_2/luna/a.txt',
      '/etc/passwd',
    ]) {
      const { content, failed } = await run(`cat ${path}`);
      expect(failed).toBe(true);
      expect(content).toMatch(/No such file/);
    }
    expect((await run('ls -A / /work')).content).not.toMatch(/home|root|sys|var\n.*lib|config/);
    const listed = await run('ls -d /proc/[0-9]* | wc -l; whoami; ls /root /home /run /sys 2>&1');
    expect(Number(listed.content.split('\n')[0])).toBeLessThan(8);
    expect((await run('cat /proc/1/environ /proc/[0-9]*/environ | tr "\\0" "\\n"')).content).not.toContain(
      'hush',
    );
  });

  test('does not show its own command line with the paths of the machine', async () => {
    const { run, home } = await setUp();
    const { content } = await run('cat /proc/[0-9]*/cmdline | tr "\\0" " "');
    expect(content).toContain('--args');
    expect(content).not.toContain(home);
  });

  test('can be written to in the working folder and /tmp alone, each for itself', async () => {
    const { run, home } = await setUp();
    for (const path of [
      '/x',
      '/usr/x',
      '/etc/x',
      '/dev/x',
      'media/x',
      'media/sent.txt',
      '/proc/sys/vm/swappiness',
    ]) {
      expect((await run(`echo x > ${path}`)).failed).toBe(true);
    }
    expect(
      (await run('echo x > /tmp/y && cat /tmp/y; rm media/sent.txt; mv media gone; ln -sf /etc media'))
        .content,
    ).toMatch(/^x\n/);
    expect((await run('ls -A /tmp')).content).toBe('[exit code 0]');
    expect((await run('head -c 200000000 /dev/zero > /tmp/big')).failed).toBe(true);
    expect(await readFile(join(home, MEDIA, 'sent.txt'), 'utf8')).toBe('sent');
  });

  test('has no rights, and gets none', async () => {
    const { run } = await setUp();
    const rights = await run('grep -E "Cap(Eff|Bnd|Prm)|NoNewPrivs" /proc/self/status');
    expect(rights.content.match(/Cap\w+:\s+0{16}/g)).toHaveLength(3);
    expect(rights.content).toMatch(/NoNewPrivs:\s+1/);
    expect((await run('unshare -Ur true')).failed).toBe(true);
    expect((await run('mount -t tmpfs none /tmp')).failed).toBe(true);
  });

  test('gets no memory that belongs to no process', async () => {
    const { run } = await setUp();
    const ask = (call: string) => run(`perl -e '${call} // print "refused: $!"'`);
    expect((await ask('shmget(0, 100_000_000, 01600)')).content).toContain('refused: Function not impl');
    expect((await ask('msgget(0, 01600)')).content).toContain('refused: Function not impl');
    expect((await run('perl -e "print fork() // 0 ? q(runs) : q()"')).content).toContain('runs');
  });

  test('has no network, unless it is allowed', async () => {
    const server = createServer((socket) => socket.end('hello\n')).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const command = `exec 9<>/dev/tcp/127.0.0.1/${port} && cat <&9`;
    expect((await (await setUp()).run(command)).content).not.toContain('hello');
    expect((await (await setUp({ network: true })).run(command)).content).toContain('hello');
  });

  test('hides what lies among the programs', async () => {
    const { run } = await setUp({}, { folders: { hidden: ['/usr/share', '/usr/bin/env'] } });
    expect((await run('ls -A /usr/share')).content).toBe('[exit code 0]');
    expect((await run('head -c 1 /usr/bin/env')).content).toMatch(/Permission denied|^.exit code 0/);
  });

  test('goes on where a link or a file stands in the place of media/', async () => {
    const { run, home } = await setUp();
    await symlink('/etc', join(home, WORK, 'media'));
    expect((await run('cat media/sent.txt')).content).toContain('sent');
    const other = await setUp();
    await other.put(`${WORK}/media`, 'x');
    expect((await other.run('true')).content).toContain('in the way');
  });

  test('ends when the gateway is killed', async () => {
    const { home } = await setUp();
    await killsGateway('bubblewrap', home);
  });

  test('that cannot be made runs nothing: a sentence for the model, a line for the operator', async () => {
    const broken = join((await makeHome()).home, 'bwrap');
    await writeFile(broken, '#!/bin/sh\necho "bwrap: no namespaces here" >&2\nexit 1\n', { mode: 0o755 });
    const { run, logged } = await setUp({}, { bubblewrap: broken });
    const result = await run('touch x');
    expect(result).toMatchObject({ failed: true, content: expect.stringContaining('Nothing was run') });
    expect(result).not.toHaveProperty('results');
    expect(logged).toEqual([expect.stringMatching(/^error .*bubblewrap.*no namespaces here/)]);
  });
});

test('without bubblewrap nothing is run: a sentence for the model, a line for the operator', async () => {
  const { run, logged, home } = await setUp({}, { bubblewrap: null });
  expect(await run('touch x')).toMatchObject({
    failed: true,
    content: expect.stringContaining('Nothing was run'),
  });
  expect(logged).toEqual([expect.stringMatching(/^error .*bubblewrap.*not installed/)]);
  expect(await readdir(join(home, WORK))).toEqual(['a.txt']);
});

test('without a sandbox a command ends when the gateway is killed, too', async () => {
  const { home } = await setUp();
  await killsGateway('none', home);
});

test('a file of 1 GB in the folder is too much', async () => {
  const { run, home } = await setUp({ sandbox: 'none' });
  await truncate(join(home, WORK, 'a.txt'), 1_000_000_000);
  expect((await run('echo x > b && cat b')).content).not.toMatch(/^x/);
  expect((await run('rm a.txt && echo x > b && cat b')).failed).toBe(true);
  expect((await run('echo x > b && cat b')).content).toMatch(/^x/);
});

/** A process that runs a command as the gateway does, and is killed while it runs. */
async function killsGateway(sandbox: string, home: string): Promise<void> {
  await build({
    entryPoints: [fileURLToPath(new URL('killed-gateway.ts', import.meta.url))],
    outfile: join(home, 'killed-gateway.mjs'),
    ...{ bundle: true, format: 'esm', platform: 'node', target: 'node20' },
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
  const gateway = spawn(process.execPath, [join(home, 'killed-gateway.mjs'), sandbox, home], {
    stdio: 'inherit',
  });
  await appears(join(home, WORK, 'ticks'));
  gateway.kill('SIGKILL');
  await new Promise((resolve) => gateway.once('exit', resolve));
  expect(await comesToStand(join(home, WORK, 'ticks'))).toBe(true);
}
