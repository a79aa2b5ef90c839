/** What a model may do in a turn: every tool there is, and which turns have which. */
import type { Config } from './config.js';
import { postReaction } from './conversation/deliver/react.js';
import { postSideMessage } from './conversation/deliver/say.js';
import type { Services } from './conversation/services.js';
import { toolSet } from './conversation/turn/tools.js';
import type { Memory } from './core/memory.js';
import type { AnyTool, ToolsFor, TurnKind } from './core/tool.js';
import { draftTools, memoryTools } from './tools/memory.js';
import { react } from './tools/react.js';
import { searchMemory } from './tools/search-memory.js';
import { sendMessage } from './tools/send-message.js';

type Deliver = Parameters<typeof postSideMessage>[0]['deliver'];

interface Parts
  extends Pick<
    Services,
    'store' | 'channels' | 'personas' | 'memory' | 'archives' | 'recall' | 'settings' | 'zone' | 'clock'
  > {
  config: Pick<Config, 'groupsDir' | 'tools'>;
  deliver: Deliver;
  /** `data/media`. */
  mediaFolder: string;
}

export function createToolsFor(parts: Parts): ToolsFor {
  const { config, store, channels, personas, memory, archives, recall, deliver, settings, zone, clock } =
    parts;
  const { mediaFolder } = parts;
  const reaction = react({
    post: (asked) => postReaction({ store, channels, personas, clock, settings, deliver }, asked),
    emojiOn: (channel) => channels.get(channel)?.reactions,
  });
  const mayReact: MayReact = ({ channel, chatKind }) =>
    channels.get(channel)?.react !== undefined &&
    (config.tools.reactions === 'everywhere' ||
      (config.tools.reactions === 'groups' && chatKind === 'group'));
  const sending = sendMessage({
    groupsDir: config.groupsDir,
    mediaFolder,
    archives,
    post: (aside) => postSideMessage({ store, channels, deliver, personas, clock }, aside),
  });
  const { tier1By } = settings;
  const tools = {
    forFiles: memoryTools(memory, tier1By),
    forDraft: (draft: Memory) => draftTools(draft, tier1By),
  };
  return toolsOf(tools, [searchMemory(recall, zone), sending], reaction, mayReact);
}

interface MemoryTools {
  forFiles: AnyTool[];
  forDraft(draft: Memory): AnyTool[];
}

type MayReact = (turn: Pick<TurnKind, 'channel' | 'chatKind'>) => boolean;

/**
 * Selects a turn's tools: a memory flush gets the memory tools, every other turn all, but for reactions where there are
 * none; those of a draft write into it.
 */
function toolsOf(memory: MemoryTools, others: AnyTool[], reaction: AnyTool, mayReact: MayReact): ToolsFor {
  const forFlushes = toolSet(memory.forFiles);
  const forAnswers = toolSet([...memory.forFiles, ...others]);
  const withReactions = toolSet([...memory.forFiles, ...others, reaction]);
  return ({ kind, draft, ...turn }) => {
    if (draft) return toolSet(memory.forDraft(draft));
    if (kind === 'flush') return forFlushes;
    return mayReact(turn) ? withReactions : forAnswers;
  };
}
