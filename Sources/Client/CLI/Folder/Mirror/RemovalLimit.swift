import ThicketCommandLine

/// How many objects, or files, a mirror may remove at once before it is asked for: a folder that was emptied, or a
/// bucket that was, must not take the other side along (docs/decisions/0091).
struct RemovalLimit: Sendable, Equatable {
    /// So many are allowed; nil: any number; without the option only what `isMany` lets through.
    enum Allowed: Sendable, Equatable {
        case few
        case upTo(Int)
        case all
    }

    /// Removals that are many only where they are more than this.
    static let fewMax = 20

    var allowed = Allowed.few

    init() {}

    /// - Parameter text: of `--allow-removals`; nil when it was not given.
    /// - Throws: `usage`.
    init(_ text: String?) throws(Failure) {
        guard let text else { return }
        if same(text, "all") {
            allowed = .all
        } else if let count = Int(text), count >= 0 {
            allowed = .upTo(count)
        } else {
            throw Failure("--allow-removals is a number or 'all', not '\(text)'", .usage)
        }
    }

    /// - Parameters:
    ///   - count: what would be removed.
    ///   - total: what is mirrored.
    ///   - isEmptied: nothing of all that is left on the other side, though the mirror's memory is.
    func stops(_ count: Int, of total: Int, isEmptied: Bool = false) -> Bool {
        guard count > 0 else { return false }
        switch allowed {
        case .all: return false
        case .upTo(let most) where count <= most: return false
        case .few, .upTo: return (count > Self.fewMax && 2 * count > total) || (isEmptied && total > 1)
        }
    }
}
