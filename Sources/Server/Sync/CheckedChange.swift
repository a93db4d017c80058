import ThicketProtocol

/// A change with valid names and a valid shape. Whether it applies to the object is not known yet.
struct CheckedChange: Sendable {
    /// The requested operation.
    enum Intent: Sendable {
        /// `M`: with the diff as sent, the whole object as sent, or both.
        case modify(diff: ChangeRequest.Diff?, whole: WholeObject?)
        /// `-`.
        case remove
        /// `EMPTY`: removes every object of the bucket.
        case empty
    }

    /// The content of `d`.
    enum WholeObject: Sendable {
        /// A whole object, not parsed yet.
        case object(JSONFragment)
        /// Members to set in the object, not parsed yet; the other members stay.
        case members(JSONFragment)
        /// The ghost record that `node-simperium` sends instead of the object (wire contract, 1.11). Storing it would
        /// destroy the object.
        case ghostRecord
    }

    let key: EntityKey
    let changeID: ChangeID
    let intent: Intent
    /// `sv`, with 0 treated as absent.
    let source: Version?
    let library: AuthorLibrary
    let echoesRemoval: Bool
    /// Whether a source version that is not kept is an error even if the whole object was sent.
    let needsSource: Bool
    /// Whether the author wants exactly the object that the diff makes of version `source`, not only the effect of the
    /// diff.
    let isWhole: Bool

    /// Whether `d` is the object that the author wants. The Thicket client sends `d` beside a `v` that was refused,
    /// which may be an ordinary edit; it sets a flag when the edit sets the whole object.
    var wantsWholeObject: Bool {
        if case .modify(_?, _) = intent, library == .thicket { return isWhole }
        return true
    }

    /// The rule by which the author's own library would rebase.
    var rule: TransformRule { library == .thicket ? .exact(tie: .after) : .reference }
}

extension CheckedChange {
    /// Checks everything that does not depend on the bucket.
    ///
    /// - Throws: 400 for an invalid key, ccid, shape or operation; 401 without write permission (wire contract, 6.3).
    init(_ submitted: SubmittedChange) throws(ChangeRejection) {
        let request = submitted.request
        if let problem = request.problems.first { throw ChangeRejection(.invalidRequest, problem) }
        do {
            changeID = try ChangeID(request.ccid)
        } catch {
            throw ChangeRejection(.invalidRequest, error.description)
        }
        do {
            key = try EntityKey(request.key)
        } catch {
            throw ChangeRejection(.invalidRequest, error.description)
        }
        if let source = request.sv, source < 0 { throw ChangeRejection(.invalidRequest, "sv below 0") }
        source = request.sv == 0 ? nil : request.sv
        library = submitted.library
        echoesRemoval = submitted.echoesRemoval
        needsSource = submitted.terms?.needsSource ?? false
        isWhole = request.isWhole
        intent = try Self.intent(of: request, submitted: submitted)
        guard submitted.canWrite else { throw ChangeRejection(.unauthorized, "the token is read-only") }
    }

    private static func intent(
        of request: ChangeRequest, submitted: SubmittedChange
    ) throws(ChangeRejection) -> Intent {
        switch request.operation {
        case .modify:
            guard request.diff != nil || request.object != nil else {
                throw ChangeRejection(.invalidRequest, "M without v and d")
            }
            return .modify(diff: request.diff, whole: try whole(of: request, submitted: submitted))
        case .remove:
            return .remove
        case .empty:
            guard request.key.utf8.elementsEqual(submitted.bucket.name.text.utf8) else {
                throw ChangeRejection(.invalidRequest, "EMPTY whose id is not the bucket's name")
            }
            return .empty
        case .drop:
            throw ChangeRejection(.unauthorized, "DROP needs an administrator")
        case .other:
            throw ChangeRejection(.invalidRequest, "unknown operation")
        }
    }

    private static func whole(
        of request: ChangeRequest, submitted: SubmittedChange
    ) throws(ChangeRejection) -> WholeObject? {
        guard let sent = request.object else { return nil }
        guard sent.isObject else { throw ChangeRejection(.invalidRequest, "d is not an object") }
        if submitted.terms?.mergesObject == true { return .members(sent) }
        return submitted.library == .nodeSimperium && isGhostRecord(sent) ? .ghostRecord : .object(sent)
    }

    private static func isGhostRecord(_ sent: JSONFragment) -> Bool {
        guard case .node(let node) = sent else { return sent.object.map { isGhostRecord($0) } ?? false }
        // Keys are distinct, so this ends at the fourth.
        return node["data"]?.kind == .object && node.pairs.allSatisfy { key, _ in isGhostKey(key) }
    }

    /// Whether the object is `{"version":n,"data":{…}}` or `{"data":{},"key":id}`: only these three keys, and `data` an
    /// object.
    private static func isGhostRecord(_ object: JSONObject) -> Bool {
        guard case .object? = object["data"] else { return false }
        return object.keys.allSatisfy { isGhostKey($0) }
    }

    private static func isGhostKey(_ key: String) -> Bool {
        ["data", "version", "key"].contains { $0.utf8.elementsEqual(key.utf8) }
    }
}
