public import ThicketKeyLog
public import ThicketProtocol

extension KeyBook {
    /// Whether an account has, or had, keys whose identity key fits, and each later one was signed by the one before.
    /// The account's whole chain is asked for, unless this session has seen it.
    ///
    /// - Returns: false for keys that the log does not have, and for those before keys that were not signed by them.
    /// - Throws: as `keys(of:)`.
    public func hasSuccessors(
        of user: UserID, where fits: @Sendable (PublicKeys) -> Bool
    ) async throws(PeopleError) -> Bool {
        let newest = try await keys(of: user)
        if fits(newest) { return true }
        // The id that no keys have makes the look-up whole.
        _ = try await earlierKeys(of: user, id: "")
        guard let chain = knownChain(of: user), let place = chain.lastIndex(where: { fits($0.keys) }) else {
            return false
        }
        return chain[(place + 1)...].allSatisfy { $0.kind == .rotation }
    }
}
