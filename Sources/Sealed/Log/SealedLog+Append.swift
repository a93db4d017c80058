import ThicketProtocol

extension SealedLog {
    /// Why an operation does not count, for every reader alike. It keeps its position.
    public enum VoidReason: Sendable, Equatable {
        /// It does not open: its bytes were changed, or it belongs to another object.
        case doesNotOpen
        /// It opens and is not an operation.
        case malformed
        /// Its base is more than 64 positions before it.
        case tooOld
        /// Its base is before its author's own last operation: it was replayed, or the author is faulty.
        case behindAuthor
        /// It was made for another incarnation.
        case otherIncarnation
        /// It was written under an older list of readers than an operation before it. The rest of it was not read.
        case olderList

        /// Whether honest servers and devices can never cause it.
        public var isSuspicious: Bool {
            switch self {
            case .doesNotOpen, .malformed, .behindAuthor: true
            case .tooOld, .otherIncarnation, .olderList: false
            }
        }
    }

    /// The effect of an operation.
    public enum Verdict: Sendable, Equatable {
        /// It counts. `edit` is its effect on the whole object; nil when nothing was left to do.
        case applied(author: AuthorID, edit: Edit?, conflicts: [SealedConflict])
        /// It does not count.
        case void(VoidReason)
        /// It opens, but does not fit the object for which it claims to be made. It is kept and changes nothing.
        case misfit(author: AuthorID, DiffError)
        /// It was made under unknown rules. It was not taken: the log ends before it.
        case unknownRules
        /// Its author had seen another history, which differs at `at` or before. It was not taken: the log ends before
        /// it.
        case forked(at: Int)

        /// Whether the log advanced by one position.
        public var isAppended: Bool {
            switch self {
            case .applied, .void, .misfit: true
            case .unknownRules, .forked: false
            }
        }
    }

    /// Takes the next operation.
    ///
    /// - Parameters:
    ///   - sealed: the decoded bytes.
    ///   - clear: their clear text; nil when they do not open.
    public mutating func append(_ sealed: [UInt8], clear: [UInt8]?) -> Verdict {
        let operation: SealedOperation
        do throws(VerdictError) {
            operation = try admitted(clear)
        } catch {
            if error.verdict.isAppended { advance(sealed, nil, nil) }
            return error.verdict
        }
        do throws(DiffError) {
            let outcome = try carriedOut(operation)
            advance(sealed, operation, outcome.edit)
            object = outcome.value?.objectValue
            return .applied(author: operation.author, edit: outcome.edit, conflicts: outcome.conflicts)
        } catch {
            advance(sealed, operation, nil)
            return .misfit(author: operation.author, error)
        }
    }

    private struct VerdictError: Error { let verdict: Verdict }

    /// The operation, if it counts at the next position.
    private func admitted(_ clear: [UInt8]?) throws(VerdictError) -> SealedOperation {
        guard let clear else { throw VerdictError(verdict: .void(.doesNotOpen)) }
        let operation = try read(clear)
        guard operation.incarnation == incarnationTag else { throw VerdictError(verdict: .void(.otherIncarnation)) }
        // Its author has applied more operations than this log holds: the server left some out.
        guard operation.base <= position else { throw VerdictError(verdict: .forked(at: position + 1)) }
        if let head = chain[operation.base], head != operation.head {
            throw VerdictError(verdict: .forked(at: operation.base))
        }
        if let last = lastPositions[operation.author], operation.base < last {
            throw VerdictError(verdict: .void(.behindAuthor))
        }
        guard position + 1 - operation.base <= SealedLimits.windowPositions else {
            throw VerdictError(verdict: .void(.tooOld))
        }
        return operation
    }

    /// Reads an operation. The list of readers that it names is checked first: its author may have been removed since,
    /// so neither its rules nor the history that it claims may have any effect. An author knows the lists of all
    /// operations that it has applied; an honest author that had not seen the newer list sends its edit again under it.
    /// Newer rules, too, name their list in the same place. Where the bucket is not shared by accounts (0) the list is
    /// not checked.
    private func read(_ clear: [UInt8]) throws(VerdictError) -> SealedOperation {
        let named = list == 0 ? 0 : SealedOperation.list(clear: clear)
        if let named, named < list { throw VerdictError(verdict: .void(.olderList)) }
        do throws(SealedOperation.ReadingError) {
            return try SealedOperation(clear: clear)
        } catch {
            let isToCome = error == .unknownRules && named != nil
            throw VerdictError(verdict: isToCome ? .unknownRules : .void(.malformed))
        }
    }

    /// Transforms an operation over all operations ordered since its base, and applies it.
    private func carriedOut(_ operation: SealedOperation) throws(DiffError) -> Edit.Applied {
        guard var edit = operation.edit else { throw DiffError(.malformed) }
        for place in operation.base..<position {
            guard let other = entry(at: place + 1) else { continue }
            let order = TransformOrder(isLater: true, own: operation.author, other: other.author)
            guard let moved = try edit.transformed(over: other.edit, order) else {
                return Edit.Applied(value: object.map { .object($0) }, edit: nil)
            }
            edit = moved
        }
        return try edit.apply(to: object.map { .object($0) })
    }

    /// Advances by one position.
    /// - Parameter operation: nil when it does not count.
    private mutating func advance(_ sealed: [UInt8], _ operation: SealedOperation?, _ edit: Edit?) {
        chain.append(sealed)
        if let operation {
            lastPositions[operation.author] = position
            list = operation.list
        }
        if let operation, let edit {
            window.append(Entry(author: operation.author, edit: edit))
        } else {
            window.append(nil)
        }
        if window.count > SealedLimits.windowPositions { window.removeFirst() }
    }
}
