import CLibFuzzer
import Glibc

/// The targets by name: each takes an input and checks what holds for every input.
let targets: [String: @Sendable ([UInt8]) -> Void] = [
    "conditions": checkConditions,
    "cursor": checkCursor,
    "events": checkEvents,
    "hosts": checkHosts,
    "json": checkJSON,
    "patch": checkPatch,
    "pointer": checkPointer,
    "preferences": checkPreferences,
    "recording": checkRecording,
    "requests": checkRequests,
    "segment": checkSegment,
    "target": checkTarget,
]

guard let name = getenv("FUZZ_TARGET").map({ String(cString: $0) }), let check = targets[name] else {
    print("FUZZ_TARGET must be one of \(targets.keys.sorted().joined(separator: " "))")
    exit(64)
}
/// The target of this process; it is set before libFuzzer starts.
nonisolated(unsafe) private var target = check

var arguments = CommandLine.arguments.map { strdup($0) }
var count = Int32(arguments.count)
arguments.append(nil)
arguments.withUnsafeMutableBufferPointer { buffer in
    var base = buffer.baseAddress
    exit(
        LLVMFuzzerRunDriver(&count, &base) { bytes, count in
            target(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        })
}
