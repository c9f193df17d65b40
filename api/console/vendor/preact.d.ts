// The types of preact.js that the pages use.
export interface VNode {
  readonly __v?: unknown;
}
export type Child = VNode | string | number | boolean | null | undefined | readonly Child[];
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function h(type: unknown, props: object | null, ...children: Child[]): VNode;
export function render(node: VNode, parent: Element): void;
export const Fragment: unknown;
export type Set<T> = (value: T | ((before: T) => T)) => void;
export function useState<T>(initial: T | (() => T)): [T, Set<T>];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(
  effect: () => void | (() => void),
  inputs?: readonly unknown[],
): void;
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export function useCallback<T>(callback: T, inputs: readonly unknown[]): T;
export function useRef<T>(initial: T): { current: T };
