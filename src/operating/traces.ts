/**
 * The steps of the route as OpenTelemetry spans, named by its semantic conventions for GenAI and messaging (1.41). A trace's
 * id is the hash of a turn's or message's id, so a process that continues a turn, or sends its reply later, adds to the same
 * trace, and nothing is stored for it (docs/decisions/0072).
 */
import { createHash } from 'node:crypto';
import type { TracedMessage, TracedStep, TracedTurn, Tracing } from '../core/tracing.js';
import type { OtlpSpan, SpanContext, SpanExporter } from './otlp.js';

interface TracesOptions {
  exporter: SpanExporter;
  /** The share of traces that are kept, from 0 to 1. */
  sample: number;
  /** Hexadecimal digits. */
  randomHex(bytes: number): string;
}

export interface Traces extends Tracing {
  /** Sends the spans that still wait, for 1.5 s at most. */
  end(): Promise<void>;
}

/** OTLP's numbers. */
const INTERNAL = 1;
const CLIENT = 3;
const CONSUMER = 5;

/** Longer lists of links are cut; the specification's limit. */
const MOST_LINKS = 128;

export function createTraces({ exporter, sample, randomHex }: TracesOptions): Traces {
  /** Every process decides alike about a trace: by the last 56 bits of its id, of which a number here holds 52. */
  const isKept = (traceId: string) => Number.parseInt(traceId.slice(-14, -1), 16) >= (1 - sample) * 16 ** 13;

  return {
    tell(step) {
      const turnId = 'turnId' in step ? step.turnId : null;
      const root = rootOf(step, turnId) ?? { traceId: randomHex(16), spanId: randomHex(8) };
      if (!isKept(root.traceId)) return;
      const isChild = turnId !== null && step.kind !== 'turn';
      const place = isChild
        ? { traceId: root.traceId, spanId: randomHex(8), parentSpanId: root.spanId }
        : root;
      const { from, until, error } = step;
      const { attributes, ...named } = spanOf(step);
      const all = { ...attributes, 'coterie.turn.id': turnId, 'error.type': error };
      // A clock may be set back while something runs.
      exporter.add({ ...place, ...named, attributes: all, from, until: Math.max(from, until), error });
    },
    end: exporter.end,
  };
}

/** The context derived from an id; null for a step that belongs to none. */
function rootOf(step: TracedStep, turnId: string | null): SpanContext | null {
  if (step.kind === 'receive') return ofMessage(step.message);
  return turnId === null ? null : ofTurn(turnId);
}

export function ofTurn(turnId: string): SpanContext {
  return derived(`turn ${turnId}`);
}

export function ofMessage({ room, platformMessageId }: TracedMessage): SpanContext {
  return derived(`message ${room} ${platformMessageId}`);
}

function derived(from: string): SpanContext {
  const digest = createHash('sha256').update(from).digest('hex');
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48) };
}

type Described = Omit<OtlpSpan, keyof SpanContext | 'from' | 'until' | 'error'>;

function spanOf(step: TracedStep): Described {
  switch (step.kind) {
    case 'receive':
      return message('receive', CONSUMER, step.channel, {});
    case 'send':
      return message('send', CLIENT, step.channel, { 'coterie.outcome': step.outcome });
    case 'turn':
      return turnSpan(step);
    case 'model':
      return genAi('chat', CLIENT, step.model, {
        // The client's: any server that speaks like OpenAI's.
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': step.model,
        'gen_ai.response.model': step.answered?.model,
        ...tokens(step.answered?.usage),
      });
    case 'tool':
      return genAi('execute_tool', INTERNAL, step.tool, {
        'gen_ai.tool.name': step.tool,
        'gen_ai.tool.call.id': step.callId,
      });
  }
}

function turnSpan({ agent, outcome, answers, givenBy }: TracedTurn): Described {
  const links = [...answers.map(ofMessage), ...(givenBy === undefined ? [] : [ofTurn(givenBy)])];
  const attributes = {
    'gen_ai.agent.id': agent,
    'gen_ai.agent.name': agent,
    'coterie.outcome': outcome,
  };
  return { ...genAi('invoke_agent', INTERNAL, agent, attributes), links: links.slice(0, MOST_LINKS) };
}

function genAi(operation: string, kind: number, of: string, more: OtlpSpan['attributes']): Described {
  return { name: `${operation} ${of}`, kind, attributes: { 'gen_ai.operation.name': operation, ...more } };
}

function message(operation: string, kind: number, channel: string, more: OtlpSpan['attributes']): Described {
  const attributes = {
    'messaging.system': channel,
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    ...more,
  };
  return { name: `${operation} ${channel}`, kind, attributes };
}

function tokens(
  usage: { inputTokens: number; outputTokens: number } | null | undefined,
): OtlpSpan['attributes'] {
  if (!usage) return {};
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
  };
}
