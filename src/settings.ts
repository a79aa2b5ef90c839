/** The configuration in the form that the route of a message needs. */
import { CHANNELS } from './channels/list.js';
import type { Config } from './config.js';
import type { Services, Settings } from './conversation/services.js';
import type { PairingRequest } from './core/access.js';
import { BOARD } from './core/board.js';
import { Fault } from './core/errors.js';
import { type ChatId, channelOf } from './core/ids.js';
import type { Prices } from './core/model.js';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export function settingsOf(config: Config): Settings {
  return {
    maxOutputTokens: config.model.maxOutputTokens,
    maxToolRounds: config.model.maxToolRounds,
    choices: config.model.choices,
    ...config.conversation,
    natural: config.personas.natural,
    characterMaxChars: config.personas.characterMaxChars,
    lore: { scanDepth: config.lore.scanDepth, budgetTokens: config.lore.budgetTokens ?? null },
    versionButtons: config.personas.buttons,
    callLimits: config.limits,
    approvalMs: config.approvals.minutes * MINUTE_MS,
    caps: { rounds: config.personas.maxRounds, replies: config.personas.maxReplies },
    limits: config.limits,
    announce: config.memory.announce ?? null,
    // In a direct chat, its person may change whatever an administrator may in a group.
    tier1By: config.memory.tier1By ?? ('administrators' as const),
    // The offline model would only damage memory.
    consolidation:
      config.memory.consolidate && config.model.server !== null
        ? { tokens: config.memory.consolidateTokens, memoryChars: config.memory.longTermMaxChars }
        : null,
    maxAgeMs: config.delivery.maxAgeHours * HOUR_MS,
  };
}

export function channelSettingsOf({ channels }: Config): Pick<Services, 'rulesFor' | 'labelOf' | 'streams'> {
  /** Throws for an unconfigured channel: without access rules, it would admit nobody. */
  function optionsOf(name: string) {
    const options = channels[name as keyof typeof channels];
    if (options) return options;
    throw new Fault('internal', `channel ${name} is not configured, but a message came from it`);
  }

  return {
    rulesFor: (channel) => optionsOf(channel).access,
    labelOf: (channel) =>
      CHANNELS.find(({ name }) => name === channel)?.label ??
      (channel === BOARD ? 'the board' : 'the terminal'),
    streams: (channel) => optionsOf(channel).streaming !== 'off',
  };
}

/** Without the terminal's user and that of the page, who are always owners. */
export function listedOwners({ channels }: Config): ChatId[] {
  const rules = [...CHANNELS.map(({ name }) => channels[name]?.access), channels.terminal.access];
  return [...new Set(rules.flatMap((each) => each?.owners ?? []).filter((id) => id !== 'terminal_local'))];
}

/** Whether the configuration already admits this group, or the community or server it is part of. */
export function isListed({ channels }: Config, { kind, id, within }: PairingRequest): boolean {
  const name = CHANNELS.find((each) => each.name === channelOf(id))?.name;
  const rules = name === undefined ? undefined : channels[name]?.access;
  if (kind !== 'group' || rules === undefined) return false;
  return (
    rules.groups === 'open' || [id, within].some((each) => each !== undefined && rules.chats.includes(each))
  );
}

/** The windows and prices of the main server's models. */
export function modelFacts({ model }: Config) {
  const choice = (name: string) => model.choices.find((each) => each.name === name);
  return {
    contextTokens: (name: string) => choice(name)?.contextTokens ?? model.contextTokens,
    // A model without prices of its own is not free: it costs what the main model does.
    prices: (name: string) => pricesOf(choice(name)) ?? pricesOf(model),
  };
}

/** null if neither is set; if only one is, the other is 0. */
export function pricesOf(set?: {
  inputPrice?: number | undefined;
  outputPrice?: number | undefined;
}): Prices | null {
  if (set?.inputPrice === undefined && set?.outputPrice === undefined) return null;
  return { input: set.inputPrice ?? 0, output: set.outputPrice ?? 0 };
}
