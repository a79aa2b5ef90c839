/**
 * Clients of the configured servers: model with fallbacks, speech, transcription, embeddings, tools, Redis. The code
 * for a server that is not configured is not loaded.
 */
import { randomUUID } from 'node:crypto';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import type { Log, Metrics } from './core/log.js';
import type { ModelClient } from './core/model.js';
import { TIMES_AN_ANSWER } from './core/network.js';
import type { Embedder } from './core/recall.js';
import { type SharedStore, type Store, settingOf } from './core/store.js';
import type { Stream } from './journal/journal.js';
import type { McpServers } from './mcp/servers.js';
import { createOutward } from './network/outward.js';
import { createRedactor } from './operating/redact.js';
import { foldersOf } from './paths.js';
import { secretsOf } from './secrets.js';
import { modelFacts, pricesOf } from './settings.js';

/** The setting that stores what is learnt of model servers. */
const SERVER_WAYS = 'model.servers';

export async function createModel(config: Config, store: SharedStore, log: Log): Promise<ModelClient> {
  const { server, fallbacks, images, maxOutputTokens, timeoutSeconds } = config.model;
  if (!server) return (await import('./models/offline.js')).createOfflineModel();
  const { createOpenAiModel } = await import('./models/openai.js');
  const { withFallbacks } = await import('./models/retries.js');
  const { ServerWays } = await import('./models/server-ways.js');
  const storage = {
    load: () => settingOf(store, SERVER_WAYS),
    replace: (from: string | null, to: string) => store.replaceSetting(SERVER_WAYS, from, to),
  };
  const ways = new ServerWays(storage, log);
  await ways.refresh();
  const shared = {
    ways,
    images,
    maxOutputTokens,
    timeoutSeconds,
    answerBytes: config.limits.answerBytes,
    outward: createOutward(config.network.proxies),
    clock: systemClock,
    log,
  };
  const first = createOpenAiModel({ server, ...modelFacts(config), ...shared });
  const others = fallbacks.map((each) => {
    const facts = { contextTokens: () => each.contextTokens ?? null, prices: () => pricesOf(each) };
    return createOpenAiModel({ server: each, ...facts, ...shared });
  });
  return withFallbacks(first, others, log);
}

/** Transcribes voice notes; null if none is configured. */
export async function createTranscriberOf({ transcription, model, limits, network }: Config, log: Log) {
  if (transcription === null) return null;
  const { createTranscriber } = await import('./models/audio.js');
  return createTranscriber({
    server: transcription,
    timeoutSeconds: model.timeoutSeconds,
    mostBytes: limits.answerBytes * TIMES_AN_ANSWER,
    outward: createOutward(network.proxies),
    clock: systemClock,
    log,
  });
}

/** Speaks replies; null if none is configured. */
export async function createSpeechOf(config: Config, log: Log) {
  const { speech, network } = config;
  if (speech === null) return null;
  const { createSpeaker } = await import('./models/audio.js');
  const { createSpeech } = await import('./speech/speech.js');
  return createSpeech({
    speaker: createSpeaker(speech.server, createOutward(network.proxies), systemClock),
    options: speech.options,
    folder: foldersOf(config).speech,
    clock: systemClock,
    log,
  });
}

/** null if `embeddings.backend` is off. */
export async function createEmbedder(config: Config, metrics: Metrics, log: Log): Promise<Embedder | null> {
  const { backend, baseUrl, apiKey, model, redisUrl, queue } = config.embeddings;
  if (backend === 'off' || model === null) return null;
  const { timeoutSeconds, queryPrefix, documentPrefix, dimensions } = config.embeddings;
  const recipe = { model, queryPrefix, documentPrefix, dimensions };
  const common = { ...recipe, timeoutSeconds, clock: systemClock, log, newId: randomUUID };
  if (backend === 'http' && baseUrl !== null) {
    const { createHttpEmbedder } = await import('./embedding/server.js');
    return createHttpEmbedder({ ...common, baseUrl, apiKey, outward: createOutward(config.network.proxies) });
  }
  if (backend === 'redis' && redisUrl !== null) {
    const { createRedisEmbedder } = await import('./embedding/requester.js');
    return createRedisEmbedder({ ...common, redisUrl, queue, metrics });
  }
  return null;
}

/** Where the journal is streamed besides its file; null: nowhere. */
export async function createStream(
  { redisUrl: url }: Config,
  store: Store,
  redact: (text: string) => string,
): Promise<Stream | null> {
  if (url === null) return null;
  const { createRedisStream } = await import('./journal/redis-stream.js');
  return createRedisStream({ url, store, redact });
}

export async function createMcp(config: Config, version: string, log: Log): Promise<McpServers | null> {
  const settings = config.mcp.servers;
  if (settings.length === 0) return null;
  const { createMcpServers } = await import('./mcp/servers.js');
  const redact = createRedactor(secretsOf(config));
  const outward = createOutward(config.network.proxies);
  const reach = await createReachOf(config);
  return createMcpServers(settings, { version, outward, reach, clock: systemClock, log, redact });
}

/** An address that an MCP server names is subject to the same rules as in `web_fetch`. */
export async function createReachOf({ tools, network }: Config) {
  const { createReach, systemNetwork } = await import('./tools/web/request.js');
  return createReach(tools.web.allowHosts, systemNetwork(createOutward(network.proxies)));
}
