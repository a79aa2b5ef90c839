#!/usr/bin/env node
/** Entry point of the process. AGENTS.md has the map of the folders and the route of a message through them. */
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

// Files created by any command are readable by their owner only.
process.umask(0o077);

// From Node 22.1 on; called before anything large is loaded. An unwritable folder is no error.
const { enableCompileCache } = nodeModule as { enableCompileCache?(folder: string): unknown };
enableCompileCache?.(fileURLToPath(new URL('compile-cache', import.meta.url)));

await import('./cli.js');
