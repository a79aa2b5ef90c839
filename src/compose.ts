/** Joins the parts of a gateway: message route, tools, tasks and background work. */
import { backgroundOf, createDelegating, createTaskWiring } from './background.js';
import { createConversation } from './conversation/conversation.js';
import { createDeliver } from './conversation/deliver/deliver.js';
import { DEFAULT_PERSONA } from './core/ids.js';
import { createGateway, type Gateway } from './gateway.js';
import { createOutward } from './network/outward.js';
import { createParts, type GatewayOptions } from './parts.js';
import { foldersOf, hiddenFrom } from './paths.js';
import { createToolsFor, createToolsReady } from './turn-tools.js';

export async function compose(options: GatewayOptions): Promise<Gateway> {
  const parts = await createParts(options);
  const { config, mcp, serving } = parts;
  const deliver = createDeliver(parts);
  const toolsFor = createToolsFor({
    ...parts,
    deliver,
    mediaFolder: foldersOf(config).media,
    workFolder: foldersOf(config).work,
    workspaceFolder: foldersOf(config).workspace,
    skillsFolder: foldersOf(config).skills,
    hidden: hiddenFrom(config, options.configFile),
    environment: process.env,
    outward: createOutward(config.network.proxies),
    delegation: createDelegating(parts),
  });
  const conversation = createConversation({
    ...parts,
    deliver,
    toolsFor,
    ...(mcp && { toolsReady: createToolsReady(config.tools, mcp) }),
  });
  const tasks = createTaskWiring(parts, conversation, toolsFor);
  return createGateway({
    ...parts,
    conversation,
    tasks,
    // Describing tools to a model is slow the first time; the set is cached.
    prepare: serving.map(({ name }) => () => {
      const direct = { chatKind: 'direct' as const, chatId: '', personaId: DEFAULT_PERSONA, senderId: '' };
      toolsFor({ kind: 'answer', channel: name, allowed: null, ...direct });
    }),
    background: backgroundOf(parts, conversation, tasks),
    shutdownMs: config.shutdownSeconds * 1000,
  });
}
