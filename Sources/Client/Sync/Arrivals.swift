import ThicketProtocol

/// The new objects of one turn, in order of arrival, each once.
struct Arrivals {
    private var list = [NewObject?]()
    private var places = [EntityAddress: Int]()

    var isEmpty: Bool { places.isEmpty }
    var objects: [NewObject] { list.compactMap(\.self) }

    func contains(_ address: EntityAddress) -> Bool { places[address] != nil }

    mutating func append(_ object: NewObject) {
        places[object.address] = list.count
        list.append(object)
    }

    /// - Returns: false when an object with that address is already present; that one is kept.
    mutating func appendIfNew(_ object: consuming NewObject) -> Bool {
        let place = list.count
        let known = Self.place(in: &places[object.address], orElse: place)
        guard known == place else { return false }
        list.append(object)
        return true
    }

    /// Changes the slot in place, so that the address is looked up only once.
    private static func place(in slot: inout Int?, orElse place: Int) -> Int {
        if let slot { return slot }
        slot = place
        return place
    }

    mutating func remove(_ address: EntityAddress) -> NewObject? {
        guard !places.isEmpty, let place = places.removeValue(forKey: address) else { return nil }
        defer { list[place] = nil }
        return list[place]
    }

    mutating func removeAll() {
        list.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
    }
}
