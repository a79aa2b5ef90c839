/** What the route is told of the configuration. */
import { CHANNELS } from './channels/list.js';
import type { Config } from './config.js';
import type { Services, Settings } from './conversation/services.js';
import { Fault } from './core/errors.js';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export function settingsOf(config: Config): Settings {
  return {
    maxOutputTokens: config.model.maxOutputTokens,
    maxToolRounds: config.model.maxToolRounds,
    choices: config.model.choices,
    ...config.conversation,
    ...{ natural: config.personas.natural, callLimits: config.limits },
    approvalMs: config.approvals.minutes * MINUTE_MS,
    caps: { rounds: config.personas.maxRounds, replies: config.personas.maxReplies },
    limits: config.limits,
    announce: config.memory.announce ?? null,
    // In a direct chat, whoever writes there may change what an administrator may in a group.
    tier1By: config.memory.tier1By ?? ('administrators' as const),
    // The offline model could only spoil it.
    consolidation:
      config.memory.consolidate && config.model.server !== null
        ? { tokens: config.memory.consolidateTokens, memoryChars: config.memory.longTermMaxChars }
        : null,
    maxAgeMs: config.delivery.maxAgeHours * HOUR_MS,
  };
}

type ChannelSettings = Pick<Services, 'rulesFor' | 'labelOf' | 'streams'>;

export function channelSettingsOf({ channels }: Config): ChannelSettings {
  const configured: Record<string, (typeof channels)[keyof typeof channels] | undefined> = { ...channels };

  /** Without access rules of its own, a channel would admit nobody. */
  function optionsOf(name: string) {
    const options = configured[name];
    if (!options)
      throw new Fault('internal', `channel ${name} is not configured, but a message came from it`);
    return options;
  }

  return {
    rulesFor: (channel) => optionsOf(channel).access,
    labelOf: (channel) => CHANNELS.find(({ name }) => name === channel)?.label ?? 'the terminal',
    streams: (channel) => optionsOf(channel).streaming !== 'off',
  };
}

/** The models that a persona's file for another program may name; left out where none is asked. */
export function modelsFor({ model }: Pick<Config, 'model'>): { models?: string[] } {
  if (!model.server) return {};
  return { models: [model.server.name, ...model.choices.map(({ name }) => name)] };
}
