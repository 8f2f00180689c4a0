// SPDX-License-Identifier: Apache-2.0
// The faults of a plan, each by its name: which calls and paths they hit, and how.

import { EACCES, EIO, EMFILE, EPERM, EROFS } from "../kernel.ts";
import type { Fault } from "./faults.ts";
import type { FaultName, WorldPlan } from "./plans.ts";
import type { Process } from "./processes.ts";
import type { World } from "./world.ts";

export function faultsOf(plan: WorldPlan, founders: readonly Process[], world: World): Fault[] {
  return (plan.faults ?? []).flatMap((name) => faultOf(name, founders, world));
}

function faultOf(name: FaultName, founders: readonly Process[], world: World): Fault[] {
  const pids = founders.map((process) => process.pid).join("|");
  const first = founders[0];
  const ofFounders = (file: string) => new RegExp(`^/proc/(${pids || "none"})/${file}$`);
  switch (name) {
    case "status-unreadable":
      return [{ call: "readText", path: ofFounders("status"), errno: EIO }];
    case "status-unreadable-while-alive":
      return [
        {
          call: "readText",
          path: ofFounders("status"),
          errno: EACCES,
          while: () => founders.some((one) => one.phase === "alive"),
        },
      ];
    case "bystander-unreadable": {
      const bystander = [...world.processes.values()].find((process) => process.owner === "bystander");
      return [{ call: "readText", path: new RegExp(`^/proc/${bystander?.pid ?? 0}/status$`), errno: EIO }];
    }
    case "status-flickers":
      return [{ call: "readText", path: /^\/proc\/[0-9]+\/status$/, errno: EIO, chance: 0.1 }];
    case "cgroup-path-unreadable":
      return [{ call: "readText", path: ofFounders("cgroup"), errno: EIO }];
    case "stat-unreadable":
      return [{ call: "readText", path: ofFounders("stat"), errno: EIO }];
    case "wchan-unreadable":
      return [{ call: "readText", path: /^\/proc\/[0-9]+\/wchan$/, errno: EACCES }];
    case "namespace-unreadable":
      return [{ call: "readLink", path: /^\/proc\/[0-9]+\/ns\/user$/, errno: EACCES }];
    case "events-unreadable":
      return [{ call: ["readText", "readAgain", "open"], path: /cgroup\.events$/, errno: EIO }];
    case "kill-file-denied":
      return [{ call: ["open", "writeFile"], path: /cgroup\.kill$/, errno: EACCES }];
    case "kill-write-fails":
      return [{ call: ["write", "writeFile"], path: /cgroup\.kill$/, errno: EIO }];
    case "signals-refused":
      return [{ call: "signal", path: new RegExp(`^${first?.pid ?? 0}$`), errno: EPERM }];
    case "nobody-held":
      return [{ call: "hold", path: /^/, errno: EPERM }];
    case "hold-flickers":
      return [{ call: "hold", path: /^/, errno: EMFILE, chance: 0.3 }];
    case "last-pid-unreadable":
      return [{ call: "readText", path: /^\/proc\/loadavg$/, errno: EIO }];
    case "list-unreadable":
      return [{ call: "list", path: /^\/proc$/, errno: EIO }];
    case "list-slow":
      return [{ call: "list", path: /^\/proc$/, delayMs: 2_900 }];
    case "status-slow":
      return [{ call: "readText", path: /^\/proc\/[0-9]+\/status$/, delayMs: 700 }];
    case "records-unwritable":
      return [
        { call: ["createFile", "appendFile", "replaceFile", "makeDirectory"], path: /^\/(run|var)\//, errno: EROFS },
      ];
    case "uptime-unreadable":
      return [{ call: "readText", path: /^\/proc\/uptime$/, errno: EIO }];
    case "identity-files-unreadable":
      return [{ call: "readText", path: /^\/etc\/(passwd|subuid)$/, errno: EIO }];
  }
}
