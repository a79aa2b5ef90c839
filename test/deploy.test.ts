/** What stands beside the program for operators fits it: its Node, how long a stop may take, what its sandbox needs. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configKeys } from '../src/config-keys.js';

const read = (name: string) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');
const shutdownSeconds = configKeys.parse({}).shutdown_seconds;

describe('the Dockerfile', () => {
  test('is built and run on one Node that is maintained and that the program takes', async () => {
    const versions = [...(await read('Dockerfile')).matchAll(/^FROM node:(\d+)/gm)].map(([, major]) => major);
    expect(versions).toEqual(['24', '24']);
    expect(JSON.parse(await read('package.json')).engines.node).toBe('>=20.19');
  });

  test('has an init that passes on the signal, and says how long a stop takes', async () => {
    const file = await read('Dockerfile');
    expect(file).toMatch(/^STOPSIGNAL SIGTERM$/m);
    const [, entry = '[]'] = /^ENTRYPOINT (.*)$/m.exec(file) ?? [];
    expect(JSON.parse(entry)).toEqual(['/usr/bin/tini', '--', 'node', 'dist/main.js']);
    expect(file).toMatch(/apt-get install .*\btini\b/);
    const [, seconds] = /--stop-timeout (\d+)/.exec(file) ?? [];
    expect(Number(seconds)).toBeGreaterThan(shutdownSeconds + 5);
  });
});

test('compose.yaml waits for a stop, and mounts what the program writes to', async () => {
  const { services, volumes } = parse(await read('compose.yaml'));
  const { coterie } = services;
  expect(Number.parseInt(coterie.stop_grace_period, 10)).toBeGreaterThan(shutdownSeconds + 5);
  const [, mounted = '[]'] = /^VOLUME (.*)$/m.exec(await read('Dockerfile')) ?? [];
  for (const folder of JSON.parse(mounted)) {
    const volume = coterie.volumes.find((each: string) => each.endsWith(`:${folder}`));
    expect(Object.keys(volumes)).toContain(volume?.split(':')[0]);
  }
  expect(coterie.read_only).toBe(true);
  // Docker mounts a tmpfs with noexec (moby: daemon/oci_linux.go), with which nothing that npx fetches can be started.
  const home = coterie.tmpfs.find((each: string) => each.startsWith('/home/node'));
  expect(home?.split(':')[1]?.split(',')).toContain('exec');
});

/** The keys of a unit with all their values, in order. */
async function unitOf(name: string): Promise<Map<string, string[]>> {
  const keys = new Map<string, string[]>();
  for (const [, key = '', value = ''] of (await read(`deploy/${name}`)).matchAll(/^([A-Z]\w+)=(.*)$/gm))
    keys.set(key, [...(keys.get(key) ?? []), value]);
  return keys;
}

describe.each(['coterie.service', 'coterie-with-shell.service'])('%s', (name) => {
  test('stops as the program does, and starts it again', async () => {
    const unit = await unitOf(name);
    expect(Number(unit.get('TimeoutStopSec')?.[0])).toBeGreaterThan(shutdownSeconds + 5);
    expect(unit.get('KillMode')).toEqual(['mixed']);
    expect(unit.get('Restart')).toEqual(['always']);
    // Wrong usage or configuration.
    expect(unit.get('RestartPreventExitStatus')).toEqual(['2']);
    expect(unit.get('ExecStart')?.[0]).toContain('dist/main.js start --config');
  });

  test('forbids what the program does not need, and nothing that it does', async () => {
    const unit = await unitOf(name);
    for (const key of ['NoNewPrivileges', 'PrivateTmp', 'PrivateDevices', 'ProtectHome', 'LockPersonality'])
      expect(unit.get(key), key).toEqual(['yes']);
    expect(unit.get('ProtectSystem')).toEqual(['strict']);
    expect(unit.get('CapabilityBoundingSet')).toEqual(['']);
    // V8 compiles.
    expect(unit.has('MemoryDenyWriteExecute')).toBe(false);
  });
});

test('the sandbox of shell commands has room in one unit, and none in the other', async () => {
  const [closed, open] = await Promise.all(['coterie.service', 'coterie-with-shell.service'].map(unitOf));
  expect(closed?.get('RestrictNamespaces')).toEqual(['yes']);
  expect(open?.get('SystemCallFilter')).toEqual(['@system-service @mount']);
  // Each makes bubblewrap fail: namespaces that are refused, or parts of /proc that are covered (measured).
  for (const key of [
    'RestrictNamespaces',
    'PrivateUsers',
    'ProtectKernelTunables',
    'ProtectKernelLogs',
    'ProcSubset',
  ])
    expect(open?.has(key), key).toBe(false);
});
