/// What a scenario has found.
public struct AcceptanceResult: Sendable {
    /// Figures, for the reader.
    public var summary = ""
    /// All violations, in words.
    public var faults: [String] = []

    mutating func expect(_ isSo: Bool, _ fault: @autoclosure () -> String) {
        if !isSo { faults.append(fault()) }
    }
}
