#!/usr/bin/env node
/**
 * Where the process begins. To read coterie, go on from here along one message:
 *
 * cli.ts → run.ts (locks, signals) → parts.ts (makes every part) → compose.ts (joins them) → gateway.ts (start and stop)
 * channels/<name>/          a platform's update becomes an `InboundMessage`
 * conversation/receive/     who may enter; stored, and only then acknowledged
 * conversation/rooms/       whose turn it is; context/ builds the prompt, turn/ runs model and tools
 * conversation/deliver/     the outbox, and back to channels/<name>/
 *
 * AGENTS.md has the map of the folders and the words.
 */
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

// Files that any command creates are for their owner only.
process.umask(0o077);

// From Node 22.1 on, and before anything large is loaded. A folder that cannot be written is no error.
const { enableCompileCache } = nodeModule as { enableCompileCache?(folder: string): unknown };
enableCompileCache?.(fileURLToPath(new URL('compile-cache', import.meta.url)));

await import('./cli.js');
