// SPDX-License-Identifier: Apache-2.0
/** comlink ships this module without types of its own. */
declare module 'comlink/dist/esm/node-adapter.mjs' {
  import type { Endpoint } from 'comlink';
  /** What worker_threads' Worker and MessagePort have in common. */
  interface NodePort {
    postMessage(message: unknown, transfer?: never): void;
    on(type: string, listener: (value: unknown) => void): unknown;
    off(type: string, listener: (value: unknown) => void): unknown;
    start?(): void;
  }
  export default function nodeEndpoint(port: NodePort): Endpoint;
}
