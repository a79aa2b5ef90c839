/** A gateway on any of the fake platforms with a scripted model, for tests that run on all platforms. */
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from './gateway.js';
import type { Place, Platform, Shown } from './platform.js';

export interface PlatformStage {
  platform: Platform;
  model: FakeModel;
  home: Home;
  /** Starts the gateway; its environment is the platform's, and this. */
  launch(environment?: Record<string, string>): Running;
  /** Starts it and resolves when it is up and receiving. */
  start(): Promise<Running>;
  /** Resolves when a chat has that many messages of ours. */
  replies(place: Place, count: number): Promise<Shown[]>;
  close(): Promise<void>;
}

export async function stageOn(
  platform: Platform,
  given: Record<string, unknown> = {},
): Promise<PlatformStage> {
  const model = await startFakeModel();
  const home = await makeHome({
    ...{ board: { port: 0 }, log: { format: 'json', level: 'debug' }, timezone: 'Europe/Berlin' },
    ...{ access: { direct: 'open', groups: 'open' }, conversation: { debounce_ms: 0 } },
    model: { base_url: model.url, name: 'scripted', timeout_seconds: 20 },
    channels: { [platform.name]: platform.config },
    ...given,
  });
  await platform.prepare?.(home.folder);
  const started: Running[] = [];
  const launch = (environment: Record<string, string> = {}) => {
    const gateway = run(home, ['start'], { ...platform.environment, ...environment });
    platform.attend?.(() => gateway.err());
    started.push(gateway);
    return gateway;
  };
  return {
    ...{ platform, model, home, launch },
    async start() {
      const gateway = launch();
      await gateway.saw('coterie is up');
      await platform.connected();
      return gateway;
    },
    async replies(place, count) {
      await eventually(
        () => platform.shown(place).length >= count,
        `${count} messages in ${place.kind} ${place.number}`,
      );
      return platform.shown(place);
    },
    async close() {
      await Promise.all(started.map((gateway) => gateway.stop('SIGKILL')));
      await platform.close();
      await model.close();
      await home.remove();
    },
  };
}
