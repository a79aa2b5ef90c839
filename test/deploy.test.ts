/** What stands beside the program for operators fits it: its Node, how long a stop may take, what its sandbox needs. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../src/config.js';
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

describe('compose.several.yaml', () => {
  /** Of the Compose Specification, as far as they are used here: a key that it does not know ends `docker compose`. */
  const SERVICE_KEYS =
    `build cap_drop command depends_on environment healthcheck image mem_limit pids_limit ports read_only restart security_opt
    shm_size stop_grace_period stop_signal tmpfs volumes`.split(/\s+/);
  const HEALTH_KEYS = ['test', 'interval', 'timeout', 'start_period'];
  const OF_SECRETS = {
    ...{ STORE_PASSWORD: 'a', MODEL_API_KEY: 'b', COTERIE_TOKEN: 'sixteen characters' },
    TELEGRAM_TOKEN: '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123',
  };
  const file = async () => parse(await read('deploy/compose.several.yaml'), { merge: true });
  const seconds = (time: string) => Number.parseInt(time, 10);

  test('has keys that Compose knows, and names only services and volumes that are there', async () => {
    const { services, volumes, ...rest } = await file();
    expect(Object.keys(rest)).toEqual(['x-gateway']);
    for (const [name, service] of Object.entries<Record<string, never>>(services)) {
      expect(SERVICE_KEYS, name).toEqual(expect.arrayContaining(Object.keys(service)));
      const { depends_on = {}, healthcheck = {}, volumes: mounted = [] } = service;
      expect(HEALTH_KEYS).toEqual(expect.arrayContaining(Object.keys(healthcheck)));
      for (const [other, { condition }] of Object.entries<{ condition: string }>(depends_on)) {
        expect(condition).toBe('service_healthy');
        expect(services[other]?.healthcheck?.test, other).toBeDefined();
      }
      for (const volume of mounted as string[])
        if (!volume.startsWith('./')) expect(Object.keys(volumes)).toContain(volume.split(':')[0]);
      const { image = '' }: { image?: string } = service;
      if (image !== 'coterie') expect(image, name).toMatch(/:[\w.-]*\d[\w.-]*$/);
    }
  });

  test('starts gateways of different names on one store, whose configuration is accepted without a warning', async () => {
    const { services } = await file();
    const gateways = [services.kitchen, services.attic];
    const stores = new Set<string | null>();
    const names = new Set<string>();
    for (const { environment, volumes } of [...gateways, services.worker]) {
      expect(volumes).toContain('./config.yaml:/app/config.yaml:ro');
      const given = Object.entries<string>(environment).map(([key, value]) => [
        key,
        value.replace(/^\$\{(\w+)\}$/, (_, name: keyof typeof OF_SECRETS) => OF_SECRETS[name]),
      ]);
      const { config, warnings } = await loadConfig({
        environment: { ...Object.fromEntries(given), COTERIE_CONFIG: 'several.config.yaml' },
        workingDirectory: fileURLToPath(new URL('../deploy', import.meta.url)),
      });
      expect(warnings).toEqual([]);
      stores.add(config.store.url);
      names.add(config.node.name);
      const hosts = [config.store.url, config.embeddings.redisUrl, config.embeddings.baseUrl];
      for (const url of hosts) expect(Object.keys(services)).toContain(new URL(url ?? '').hostname);
    }
    expect([...stores]).toEqual(['postgres://coterie:a@postgres:5432/coterie']);
    expect(services.postgres.environment).toMatchObject({ POSTGRES_USER: 'coterie', POSTGRES_DB: 'coterie' });
    expect(names).toEqual(new Set(['kitchen', 'attic', 'worker']));
  });

  test('waits for a stop, asks for /ready, and shares folders and no port', async () => {
    const { services } = await file();
    const [kitchen, attic] = [services.kitchen, services.attic];
    for (const service of [kitchen, attic]) {
      expect(seconds(service.stop_grace_period)).toBeGreaterThan(shutdownSeconds + 5);
      expect(service.healthcheck.test.at(-1)).toContain('/ready');
      expect(service.volumes).toEqual(expect.arrayContaining(['data:/app/data', 'groups:/app/groups']));
      expect(service.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+:8420$/)]);
    }
    expect(kitchen.ports).not.toEqual(attic.ports);
    expect(services.worker.healthcheck.test.at(-1)).toContain('/health');
    expect(services.worker.ports).toBeUndefined();
    expect(services.postgres.environment.POSTGRES_INITDB_ARGS).toContain('--locale=C');
  });
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
