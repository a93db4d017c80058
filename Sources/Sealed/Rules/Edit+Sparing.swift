import ThicketProtocol

extension Edit {
    /// The remainder of an edit after `sparing`.
    struct Rest {
        /// nil: nothing remains.
        var edit: Edit?
        /// Whether a part of the edit was dropped.
        var isLess: Bool
    }

    /// This edit of `value` without its effect on values that already equal those in `wanted`. Used for a device's own
    /// edits before they are sealed (docs/decisions/0086), never for reading operations of a log.
    func sparing(of value: JSONValue?, wanted: JSONValue?) -> Rest {
        if value == wanted { return Rest(edit: nil, isLess: true) }
        guard case .members(let members) = self, case .object(let object)? = value, case .object(let target)? = wanted
        else { return Rest(edit: self, isLess: false) }
        var kept = [Member]()
        var isLess = false
        for member in members {
            let rest = member.edit.sparing(of: object[member.key], wanted: target[member.key])
            isLess = isLess || rest.isLess
            if let edit = rest.edit { kept.append(Member(member.key, edit)) }
        }
        return Rest(edit: kept.isEmpty ? nil : .members(kept), isLess: isLess)
    }
}
