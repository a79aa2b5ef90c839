/** A gateway on a fake Telegram with a fake model, the basis of most end-to-end tests. */
import { type FakeModel, type FakeModelOptions, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, type FakeTelegramOptions, startFakeTelegram } from '../fakes/telegram.js';
import { eventually, type Home, makeHome, type Running, run } from './gateway.js';

export interface Stage {
  telegram: FakeTelegram;
  model: FakeModel;
  home: Home;
  /** Starts the gateway. */
  launch(environment?: Record<string, string>): Running;
  /** Starts it and resolves when it is up. */
  start(environment?: Record<string, string>): Promise<Running>;
  /** The present texts in a chat, in order. */
  sentTo(chatId: number): string[];
  /** Resolves with the texts when a chat has that many messages. */
  replies(chatId: number, count: number): Promise<string[]>;
  close(): Promise<void>;
}

export interface StageOptions {
  telegram?: FakeTelegramOptions;
  model?: FakeModelOptions;
  /** Merged over `channels.telegram`. */
  channel?: Record<string, unknown>;
  /** Merged over the configuration, one level deep. */
  config?: Record<string, Record<string, unknown>>;
}

export async function stage(options: StageOptions = {}): Promise<Stage> {
  const telegram = await startFakeTelegram(options.telegram);
  const model = await startFakeModel(options.model);
  const base: Record<string, Record<string, unknown>> = {
    board: { port: 0 },
    log: { format: 'json', level: 'debug' },
    access: { direct: 'open', groups: 'open' },
    conversation: { debounce_ms: 0 },
    model: { base_url: model.url, name: 'scripted', timeout_seconds: 20 },
  };
  const config: Record<string, unknown> = {
    ...base,
    channels: {
      telegram: {
        token: telegram.token,
        api_root: telegram.url,
        messages_per_second: 1000,
        per_chat_burst: 1000,
        ...options.channel,
      },
    },
    timezone: 'Europe/Berlin',
  };
  for (const [key, value] of Object.entries(options.config ?? {})) {
    config[key] = typeof value === 'object' ? { ...(config[key] as object | undefined), ...value } : value;
  }
  const home = await makeHome(config);
  const started: Running[] = [];
  const launch = (environment: Record<string, string> = {}) => {
    const gateway = run(home, ['start'], environment);
    started.push(gateway);
    return gateway;
  };
  const sentTo = (chatId: number) =>
    telegram.sent.filter((sent) => sent.chatId === chatId && !sent.gone).map((sent) => sent.text);
  return {
    telegram,
    model,
    home,
    launch,
    async start(environment) {
      const gateway = launch(environment);
      await gateway.saw('coterie is up');
      return gateway;
    },
    sentTo,
    async replies(chatId, count) {
      await eventually(() => sentTo(chatId).length >= count, `${count} messages to ${chatId}`);
      return sentTo(chatId);
    },
    async close() {
      await Promise.all(started.map((gateway) => gateway.stop('SIGKILL')));
      await telegram.close();
      await model.close();
      await home.remove();
    },
  };
}
