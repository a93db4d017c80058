extension TextDelta {
    /// An edit that leads from `source` to `target`.
    public static func diff(from source: [UInt16], to target: [UInt16], budget: inout StepBudget) -> TextDelta {
        let shorter: Int = min(source.count, target.count)
        var prefix: Int = 0
        while prefix < shorter, source[prefix] == target[prefix] { prefix += 1 }
        var suffix: Int = 0
        while suffix < shorter - prefix, source[source.count - 1 - suffix] == target[target.count - 1 - suffix] {
            suffix += 1
        }
        var result: TextDelta = .init()
        result.retain(prefix)
        result.delete(source.count - prefix - suffix)
        result.insert(target[prefix..<(target.count - suffix)])
        result.retain(suffix)
        return (try? result.keepingPairsWhole(in: source)) ?? result
    }

    /// An edit that leads from `source` to `target`.
    public static func diff(from source: String, to target: String, budget: inout StepBudget) -> TextDelta {
        diff(from: UTF16Text.units(of: source), to: UTF16Text.units(of: target), budget: &budget)
    }

    static func transformFuzzily(
        _ a: TextDelta, over b: TextDelta, base: [UInt16], _ budget: inout StepBudget
    ) throws(DeltaError) -> TextDelta? {
        nil
    }
}
