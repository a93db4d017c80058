import ThicketProtocol

/// Applies logged diffs to a body.
enum BodyReplay {
    /// - Parameters:
    ///   - diffs: each as the JSON of `v`, oldest first.
    ///   - base: JSON of the body before the first; nil for `{}`.
    ///   - gid: the change the result belongs to, for the error.
    static func apply(_ diffs: [[UInt8]], to base: [UInt8]?, upTo gid: GlobalID) throws(StoreError) -> [UInt8] {
        if diffs.isEmpty, let base: [UInt8] { return base }
        throw StoreError(.corrupt, "change \(gid): replay is not linked in yet")
    }
}
