/// The parameters that can be changed by hand and by shrinking: `--with clients=2,cut=0`.
extension Scenario {
    struct Knob: Sendable {
        let name: String
        /// The value with the least effect.
        let least: Int
        let get: @Sendable (Scenario) -> Int
        let set: @Sendable (inout Scenario, Int) -> Void
    }

    static let knobs =
        [
            Knob(name: "legacies", least: 0, get: { $0.legacies }, set: { $0.legacies = max(0, $1) }),
            Knob(name: "clients", least: 1, get: { $0.clients }, set: { $0.clients = max(1, $1) }),
            Knob(
                name: "seconds", least: 5, get: { Int($0.duration / 1_000_000) },
                set: { $0.duration = Int64(max(1, $1)) * 1_000_000 }),
            Knob(
                name: "accounts", least: 1, get: { $0.accounts },
                set: { $0.accounts = min(max(1, $1), WorldNames.accountsMax) }),
            Knob(
                name: "reader", least: 0, get: { $0.reader == nil ? 0 : 1 },
                set: { if $1 == 0 { $0.reader = nil } }),
            Knob(name: "texts", least: 1, get: { $0.texts }, set: { $0.texts = max(1, $1) }),
            Knob(
                name: "sealed", least: 0, get: { $0.sealing.rawValue },
                set: { $0.sealing = SealingShare(rawValue: min(max(0, $1), 3)) ?? .none }),
            Knob(name: "trees", least: 0, get: { $0.trees }, set: { $0.trees = $0.trees == 0 ? 0 : max(0, $1) }),
            Knob(name: "nodes", least: 4, get: { $0.nodes }, set: { $0.nodes = max(1, $1) }),
            Knob(name: "blobs", least: 0, get: { $0.blobs }, set: { $0.blobs = max(0, $1) }),
            Knob(name: "deletes", least: 0, get: { $0.deletes ? 1 : 0 }, set: { $0.deletes = $1 > 0 }),
            Knob(
                name: "retention", least: 0, get: { $0.retention == nil ? 0 : 1 },
                set: { if $1 == 0 { $0.retention = nil } }),
            Knob(
                name: "tightLimits", least: 0, get: { $0.isTight ? 1 : 0 },
                set: { if $1 == 0 { $0.loosen() } }),
            Knob(
                name: "latency", least: 2_000, get: { Int($0.latency) }, set: { $0.latency = Int64(max(200, $1)) }),
        ]
        + Fault.allCases.map { fault in
            Knob(name: fault.name, least: 0, get: { $0.faults[fault] }, set: { $0.faults[fault] = max(0, $1) })
        }

    /// Sets one knob.
    /// - Returns: false when no knob has that name.
    mutating func turn(_ name: String, to value: Int) -> Bool {
        guard let knob = Self.knobs.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return false }
        knob.set(&self, value)
        return true
    }

    /// Sets the bounds of server and shard to their defaults, except the size of an object.
    private mutating func loosen() {
        let bytes = shard.documentBytesMax
        (limits, shard, isTight) = (.init(), .init(), false)
        shard.documentBytesMax = bytes
    }
}
