/** `/persona model NAME MODEL`: gives a persona a language model of its own. */
import type { ModelChoice } from '../../core/model.js';
import { nameInWords } from '../quoting.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';

export async function setModel(
  { command, isOwner }: CommandCall,
  services: CommandServices,
  args: string[],
): Promise<CommandAnswer> {
  const { personas } = services;
  const model = args.at(-1);
  const name = nameIn(args.slice(0, -1));
  if (!model || !name) return { text: `Usage: /persona model NAME MODEL\n\n${modelsIn(services)}` };
  const named = [services.facts.model, ...services.settings.choices.map((choice) => choice.name)];
  if (!isOwner && !named.includes(model)) {
    return { text: `${model} is not among the models that can be chosen here.\n\n${modelsIn(services)}` };
  }
  const set = await personas.setModel(command.chat.id, name, model);
  return { text: set.ok ? `${nameInWords(set.persona.name)} now uses the model ${model}.` : set.reason };
}

function modelsIn({ facts, settings }: CommandServices): string {
  const own = `- ${facts.model} (the gateway’s)`;
  const others = settings.choices
    .filter(({ name }) => name !== facts.model)
    .map((choice) => `- ${inWords(choice)}`);
  return ['There are:', own, ...others].join('\n');
}

function inWords({ name, contextTokens, inputPrice, outputPrice }: ModelChoice): string {
  const prices = [
    inputPrice === undefined ? '' : `${inputPrice} for a million tokens read`,
    outputPrice === undefined ? '' : `${outputPrice} for a million written`,
  ];
  const known = [contextTokens === undefined ? '' : `holds ${contextTokens} tokens`, ...prices];
  const words = known.filter((each) => each !== '').join(', ');
  return words === '' ? name : `${name} (${words})`;
}

/** A name may consist of several words. */
export function nameIn(args: string[]): string {
  return args.join(' ').trim();
}
