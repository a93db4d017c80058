import ThicketProtocol

/// Names read back from rows: they were checked when they were written, so one that fails is a broken file.
extension Identifier {
    static func stored(_ text: String) throws(StoreError) -> Self {
        do {
            return try Self(text)
        } catch {
            throw StoreError(.corrupt, "a stored \(error.kind) \(error.problem)")
        }
    }
}
