import ThicketProtocol

/// Parses names from rows. They were validated before they were written, so an invalid one means a corrupt file.
extension Identifier {
    static func stored(_ text: String) throws(StoreError) -> Self {
        do {
            return try Self(text)
        } catch {
            throw StoreError(.corrupt, "a stored \(error.kind) \(error.problem)")
        }
    }
}
