/// What one side made of a list: what became of each element, and what was inserted before it.
private struct ListSide {
    enum Fate {
        case kept
        case removed
        case changed(JSONValue)
    }

    var fates: [Fate]
    /// Insertions before each element, and behind the last one.
    var inserted: [[JSONValue]]

    init(count: Int) {
        fates = [Fate](repeating: .kept, count: count)
        inserted = [[JSONValue]](repeating: [], count: count + 1)
    }

    /// One side's changes between two elements that it kept. Of elements that are removed where others are inserted,
    /// containers that are alike are changed ones.
    mutating func replace(_ removed: Range<Int>, of base: [JSONValue], by values: [JSONValue]) {
        var (place, rest) = (removed.lowerBound, values[...])
        while place < removed.upperBound, let next = rest.first, Self.areAlike(base[place], next) {
            fates[place] = .changed(next)
            rest.removeFirst()
            place += 1
        }
        for left in place..<max(place, removed.upperBound) { fates[left] = .removed }
        inserted[place] += rest
    }

    /// Whether one container was made of the other: they have a member or an element in common.
    private static func areAlike(_ old: JSONValue, _ new: JSONValue) -> Bool {
        switch (old, new) {
        case (.object(let old), .object(let new)): old.pairs.contains { new[$0.key] == $0.value }
        case (.array(let old), .array(let new)): !Set(old).isDisjoint(with: new)
        default: false
        }
    }
}

/// The elements of lists as code units, so that lists are compared as texts are.
private struct ElementNames {
    private var names = [JSONValue: UInt16]()

    /// Code units without the surrogates.
    private static let namesMax = 0xD800

    /// - Returns: nil for more different elements than there are names.
    mutating func named(_ list: [JSONValue]) -> [UInt16]? {
        var units = [UInt16]()
        units.reserveCapacity(list.count)
        for element in list {
            if let name = names[element] {
                units.append(name)
                continue
            }
            guard names.count < Self.namesMax else { return nil }
            let name = UInt16(names.count)
            names[element] = name
            units.append(name)
        }
        return units
    }
}

extension MergeWalk {
    /// Merges lists element by element.
    ///
    /// - Returns: nil for lists with more different elements than can be compared.
    mutating func elements(
        _ base: [JSONValue], _ local: [JSONValue], _ remote: [JSONValue]
    ) throws(DiffError) -> [JSONValue]? {
        var names = ElementNames()
        guard let source = names.named(base), let mine = names.named(local), let theirs = names.named(remote) else {
            return nil
        }
        let own = side(of: local, base, source, mine)
        var other = side(of: remote, base, source, theirs)
        Self.leaveOutTwins(own, &other, base)
        var result = [JSONValue]()
        for place in 0...base.count {
            result += other.inserted[place] + own.inserted[place]
            guard place < base.count else { break }
            let before = base[place]
            let value: JSONValue?
            switch (own.fates[place], other.fates[place]) {
            case (.kept, .kept): value = before
            case (.removed, .kept), (.kept, .removed), (.removed, .removed): value = nil
            case (.changed(let mine), .kept): value = mine
            case (.kept, .changed(let theirs)): value = theirs
            case (.changed(let mine), .changed(let theirs)):
                value = try merged(at: String(place), before, mine, theirs)
            case (.changed(let mine), .removed): value = try merged(at: String(place), before, mine, nil)
            case (.removed, .changed(let theirs)): value = try merged(at: String(place), before, nil, theirs)
            }
            if let value { result.append(value) }
        }
        return result
    }

    private mutating func side(
        of list: [JSONValue], _ base: [JSONValue], _ source: [UInt16], _ target: [UInt16]
    ) -> ListSide {
        let delta = TextDelta.diff(from: source, to: target, keepsShortEqualities: true, budget: &budget)
        var side = ListSide(count: base.count)
        var (read, written) = (0, 0)
        var (removed, values) = (0..<0, [JSONValue]())
        for operation in delta.operations {
            switch operation {
            case .retain(let count):
                side.replace(removed, of: base, by: values)
                (read, written) = (read + count, written + count)
                (removed, values) = (read..<read, [])
            case .delete(let count):
                read += count
                removed = removed.lowerBound..<read
            case .insert(let units):
                values += list[written..<(written + units.count)]
                written += units.count
            }
        }
        side.replace(removed, of: base, by: values)
        return side
    }

    /// What both sides inserted at one place is there once; so is an element that both moved.
    private static func leaveOutTwins(_ own: ListSide, _ other: inout ListSide, _ base: [JSONValue]) {
        var twins = [JSONValue: Int]()
        for (place, value) in base.enumerated() {
            if case (.removed, .removed) = (own.fates[place], other.fates[place]) { twins[value, default: 0] += 1 }
        }
        for place in other.inserted.indices {
            for value in own.inserted[place] {
                guard let twin = other.inserted[place].firstIndex(of: value) else { continue }
                other.inserted[place].remove(at: twin)
                if let left = twins[value] { twins[value] = left - 1 }
            }
        }
        if twins.isEmpty { return }
        let own = own.inserted.joined().reduce(into: [JSONValue: Int]()) { $0[$1, default: 0] += 1 }
        for (value, count) in twins { twins[value] = min(count, own[value] ?? 0) }
        for place in other.inserted.indices {
            other.inserted[place].removeAll { value in
                guard let left = twins[value], left > 0 else { return false }
                twins[value] = left - 1
                return true
            }
        }
    }
}
