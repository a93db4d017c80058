import ThicketProtocol

/// The order of two edits of one value during a transform.
public struct TransformOrder: Sendable, Equatable {
    /// The transformed edit is later in the log than the other (pending edits come after all ordered ones): where only
    /// one can prevail, the later does.
    public var isLater: Bool
    /// The transformed edit's insertions precede the other's at the same place, because its author's id is smaller.
    public var isFirst: Bool

    /// An order with both properties given.
    public init(isLater: Bool, isFirst: Bool) {
        self.isLater = isLater
        self.isFirst = isFirst
    }

    /// The transformed edit's author is `own`, the other's is `other`. One author's edits are compared only when an id
    /// is used twice: then the later one comes second.
    public init(isLater: Bool, own: AuthorID, other: AuthorID) {
        self.init(isLater: isLater, isFirst: own == other ? !isLater : own < other)
    }

    /// The same order seen from the other edit.
    public var opposite: TransformOrder { TransformOrder(isLater: !isLater, isFirst: !isFirst) }
}

extension Edit {
    /// Adjusts `self` so that it can follow `other`, when both were made from the same value: transform rules 1, the
    /// table of the wire contract (7.4, 7.5) with every shared key transformed and texts by position only.
    ///
    /// - Parameter other: must have been applied, because the values that it replaced and removed are needed.
    /// - Returns: nil when nothing is left to do.
    /// - Throws: `DiffError` when the two cannot have been made from one value.
    public func transformed(over other: Edit, _ order: TransformOrder) throws(DiffError) -> Edit? {
        switch (self, other) {
        case (.set(let mine, _), .set(let theirs, _)):
            return order.isLater && mine != theirs ? .set(mine, Context(isContested: true)) : nil
        case (.remove, .remove):
            return nil
        case (.remove, _):
            return order.isLater ? .remove(Context(isContested: true)) : nil
        case (.set(let mine, _), .remove(let context)):
            return order.isLater ? .set(mine, Context(isContested: context.old != nil)) : nil
        case (_, .remove(let context)):
            return order.isLater ? .set(try edited(context.old), Context(isContested: true)) : nil
        case (.set(let mine, _), _):
            if order.isLater { return .set(mine, Context(isContested: true)) }
            // The later edit prevails: applied to this value if it fits, otherwise alone.
            return other.outcome(on: mine).map { .set($0) }
        case (_, .set(let theirs, let context)):
            guard order.isLater else { return nil }
            return outcome(on: theirs) == nil ? .set(try edited(context.old), Context(isContested: true)) : self
        default:
            return try merged(over: other, order)
        }
    }

    /// The result of this edit on the value it was made for.
    private func edited(_ base: JSONValue?) throws(DiffError) -> JSONValue {
        guard let value = try apply(to: base).value else { throw DiffError(.missingKey) }
        return value
    }

    /// The result of this edit on a value that it was not made for; nil when it does not fit. Text deltas never count
    /// as fitting, because another text of the same length would be garbled.
    private func outcome(on value: JSONValue) -> JSONValue? {
        editsText ? nil : (try? apply(to: value))?.value
    }

    private func merged(over other: Edit, _ order: TransformOrder) throws(DiffError) -> Edit? {
        switch (self, other) {
        case (.increment, .increment):
            return self
        case (.members(let mine), .members(let theirs)):
            let members = try Self.transform(mine, over: theirs, order)
            return members.isEmpty ? nil : .members(members)
        case (.text(let mine), .text(let theirs)):
            do throws(DeltaError) {
                let moved = try TextDelta.transform(
                    mine, over: theirs, tie: order.isFirst ? .before : .after)
                return moved.isIdentity ? nil : .text(moved)
            } catch { throw DiffError(.delta(error)) }
        case (.list(let mine), .list(let theirs)):
            let moved = Edit.list(try ListTransform.transform(mine, over: theirs, order))
            return moved.isEmpty ? nil : moved
        default:
            throw DiffError(.wrongType)
        }
    }

    private static func transform(
        _ mine: [Member], over theirs: [Member], _ order: TransformOrder
    ) throws(DiffError) -> [Member] {
        let index = MemberIndex(theirs)
        var result = [Member]()
        result.reserveCapacity(mine.count)
        for member in mine {
            guard let other = index[member.key] else {
                result.append(member)
                continue
            }
            if let edit = try member.edit.transformed(over: other, order) {
                result.append(Member(member.key, edit))
            }
        }
        return result
    }
}

/// Finds members by the bytes of their keys: by linear search for few, with a table for many.
private struct MemberIndex {
    private static let indexedFrom = 17
    private let members: [Edit.Member]
    private var places = [[UInt8]: Int]()

    init(_ members: [Edit.Member]) {
        self.members = members
        guard members.count >= Self.indexedFrom else { return }
        for (place, member) in members.enumerated() { places[Array(member.key.utf8)] = place }
    }

    subscript(key: String) -> Edit? {
        guard members.count >= Self.indexedFrom else {
            return members.first { $0.key.utf8.elementsEqual(key.utf8) }?.edit
        }
        return places[Array(key.utf8)].map { members[$0].edit }
    }
}
