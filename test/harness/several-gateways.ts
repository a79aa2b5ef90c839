/** Gateways `a`, `b`, … on one PostgreSQL and one home, with a fake Telegram and a scripted model: each has a file of its own. */
import { stringify } from 'yaml';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import { type Home, makeHome, type Running, run } from './gateway.js';
import type { PostgresServer } from './postgres.js';

type ModelOptions = NonNullable<Parameters<typeof startFakeModel>[0]>;

export interface SeveralGateways {
  telegram: FakeTelegram;
  model: FakeModel;
  home: Home;
  ofTelegram(): object;
  /** Writes `<name>.yaml`. */
  configure(name: string, changes?: object): Promise<void>;
  start(name: string, environment?: Record<string, string>): Running;
  /** Runs a command with the configuration of the gateway. */
  run(name: string, ...command: string[]): Running;
  close(): Promise<void>;
}

export async function severalGateways(
  server: PostgresServer,
  { reply, leaseSeconds }: { reply: ModelOptions['reply']; leaseSeconds: number },
): Promise<SeveralGateways> {
  const telegram = await startFakeTelegram();
  const model = await startFakeModel({ ...(reply !== undefined && { reply }) });
  const home = await makeHome({});
  const url = await server.emptyDatabase();
  const started: Running[] = [];
  const ofTelegram = () => ({
    ...{ token: telegram.token, api_root: telegram.url, messages_per_second: 1_000 },
  });

  function runWith(environment: Record<string, string>, name: string, ...command: string[]): Running {
    const gateway = run(home, [...command, '-c', `${name}.yaml`], environment);
    started.push(gateway);
    return gateway;
  }

  return {
    ...{ telegram, model, home, ofTelegram },
    run: (name, ...command) => runWith({}, name, ...command),
    async configure(name, changes = {}) {
      const config = {
        ...{ store: { url }, log: { format: 'json', level: 'debug' }, board: { port: 0 } },
        ...{ access: { direct: 'open' }, conversation: { debounce_ms: 0 } },
        model: { base_url: model.url, name: 'scripted' },
        channels: { telegram: ofTelegram() },
        node: { name, lease_seconds: leaseSeconds },
        ...changes,
      };
      await home.write(`${name}.yaml`, stringify(config));
    },
    start: (name, environment = {}) => runWith(environment, name, 'start'),
    async close() {
      await Promise.all(started.map((gateway) => gateway.stop('SIGKILL')));
      await telegram.close();
      await model.close();
      await home.remove();
    },
  };
}
