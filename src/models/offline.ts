/**
 * Step 5, the model, where none is configured: a small rule-based stand-in, so that the whole route, memory
 * tools included, can be seen without a key. It says what it is in its first reply.
 */
import { Fault } from '../core/errors.js';
import type { ModelClient, ModelEvent, ModelRequest } from '../core/model.js';
import { intentOf } from './offline-intents.js';
import { recallStep, type Step, saveStep } from './offline-memory.js';
import { type Situation, situationOf } from './offline-request.js';
import { summaryFor } from './offline-summary.js';
import { smallTalk } from './offline-talk.js';

const NAME = 'offline';
/** It reads whatever it is given; this is when its windows are compacted. */
const CONTEXT_TOKENS = 128_000;

const INTRODUCTION =
  'I am the built-in offline model of coterie, a small rule-based stand-in. To talk to a real one, set ' +
  'model.base_url, model.name and model.api_key in config.yaml and start again.';

const NO_PICTURES = 'I cannot see pictures: that takes a real model, one with vision.';

const ONLY_FORWARDED =
  'Those are somebody else’s words: I leave them be. Ask me for help to see what I can do.';

export function createOfflineModel(): ModelClient {
  return {
    async *stream(request, signal): AsyncGenerator<ModelEvent> {
      if (signal.aborted) {
        yield { kind: 'failed', fault: new Fault('model_unreachable', 'The offline model was stopped.') };
        return;
      }
      const step = nextStep(request);
      if ('reply' in step) {
        for (const delta of piecesOf(step.reply)) yield { kind: 'text', delta };
        yield { ...done, text: step.reply, calls: [] };
        return;
      }
      const { name, arguments: args } = step.call;
      const call = { id: `offline${request.messages.length}`, name, arguments: JSON.stringify(args) };
      yield { ...done, text: '', calls: [call] };
    },

    contextTokens: () => CONTEXT_TOKENS,

    async check() {
      const advice =
        'no model is configured: set model.base_url, model.name and model.api_key in config.yaml';
      return { identity: 'the built-in offline model', warnings: [advice] };
    },
  };
}

/** A line at a time, as a model of some speed would write it. */
function piecesOf(text: string): string[] {
  return text.match(/[^\n]*\n+|[^\n]+$/g) ?? [];
}

const done = { kind: 'done', usage: null, model: NAME, truncated: false } as const;

/** Pure: the same request always leads to the same step. */
function nextStep(request: ModelRequest): Step {
  const summary = summaryFor(request.messages.at(-1)?.content ?? '');
  if (summary !== null) return { reply: summary };
  const situation = situationOf(request);
  // Asked to put things down before older messages leave the window: its rules save at once, so nothing is left.
  if (situation.said.at(-1)?.startsWith('Memory flush.')) return { reply: 'Nothing to store.' };
  const step = stepFor(situation);
  return 'reply' in step && situation.first ? { reply: `${INTRODUCTION}\n\n${step.reply}` } : step;
}

function stepFor(situation: Situation): Step {
  const intent = intentOf(situation.said);
  if (intent.kind === 'save') return saveStep(intent.facts, situation);
  if (intent.kind === 'recall') return recallStep(situation);
  if (situation.pictures) return { reply: NO_PICTURES };
  if (situation.said.length === 0) return { reply: ONLY_FORWARDED };
  return { reply: smallTalk(situation.said.at(-1) ?? '') };
}
